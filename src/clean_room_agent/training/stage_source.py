"""What the training stages read: the record, and the prompts that could be trained."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct, field

from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.training.credit import Charge, Waterfall, waterfall_of
from clean_room_agent.training.examples import Example, examples_of
from clean_room_agent.training.logs import Agreement, LogAnalysisAPI, TaskLog
from clean_room_agent.training.plan import DataCriteria

Progress = Callable[[int, int], None]


class LogSource(Struct, kw_only=True, dict=True):
    """The counterpart of `RepositorySource`; values are computed when first needed, then kept."""

    logs: LogAnalysisAPI
    prompts: Mapping[str, Prompt[Any, Any]]
    """All prompts of the program, by name."""
    progress: Progress = field(default=lambda _done, _total: None)

    @cached_property
    def waterfall(self) -> Waterfall:
        """Where failed tasks were lost."""
        return waterfall_of(self._tasks())

    def _tasks(self) -> Iterator[TaskLog]:
        for number, task in enumerate(self.logs.tasks(), 1):
            self.progress(number, len(self.logs.runs))
            yield task

    @cached_property
    def agreements(self) -> Mapping[str, Agreement]:
        """Verdicts compared with what was changed, by prompt, of all models together."""
        sums: dict[str, Agreement] = {}
        for each in self.logs.prompt_stats():
            if each.agreement is not None:
                known = sums.get(each.sums.prompt, Agreement(right=0, extra=0, missed=0))
                sums[each.sums.prompt] = Agreement(
                    right=known.right + each.agreement.right,
                    extra=known.extra + each.agreement.extra,
                    missed=known.missed + each.agreement.missed,
                )
        return sums

    @cached_property
    def charges(self) -> Mapping[str, Charge]:
        """The stage that each failed task is charged to, by task id."""
        return {charge.task_id: charge for charge in self.waterfall.charges}

    def examples(self, prompt: str) -> Mapping[str, Example]:
        """Every question of this prompt in an ended run, by key, oldest first."""
        if prompt not in self._examples:
            charges = self.charges
            found: dict[str, Example] = {}
            for task in self._tasks():
                made = examples_of(task, self.prompts[prompt], self.logs, charges.get(task.run.task_id))
                found |= {each.key: each for each in made}
            self._examples[prompt] = found
        return self._examples[prompt]

    @cached_property
    def _examples(self) -> dict[str, Mapping[str, Example]]:
        return {}


class TrainingStageConfig(Struct, frozen=True, kw_only=True):
    """The configuration of the training stages."""

    criteria: DataCriteria = field(default_factory=DataCriteria)
    target: str = ""
    """The prompt whose rows are selected; "" if none is chosen yet."""
