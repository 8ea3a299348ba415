"""The stage `data_selection`: which recorded answers are examples to learn from."""

from msgspec.structs import replace

from clean_room_agent.artifacts.context import Subject, TaskQuery
from clean_room_agent.retrieval.stage import Candidate, Decision, Judge, Option, StageContext, Verdict
from clean_room_agent.training.examples import Example
from clean_room_agent.training.prompts import CURATE_DATA
from clean_room_agent.training.stage_source import LogSource, TrainingStageConfig

KEEP = "yes"
TASK_CHARS = 1200
"""Of the task's words, shown to the judge."""
ANSWER_CHARS = 1200


class DataSelectionStage:
    """Selects answers that agree with the accepted change, and, as bad examples, answers that failures are charged to.
    A model judges as many doubtful ones as the plan allows, newest first. All others are left out.
    """

    name = "data_selection"

    def __init__(self, config: TrainingStageConfig) -> None:
        self._config = config

    def run(self, context: StageContext, source: LogSource, query: TaskQuery, judge: Judge) -> StageContext:  # noqa: ARG002 - the Protocol's signature
        """The context with the chosen examples in the candidates' order."""
        if not context.candidates:
            return context
        examples = source.examples(self._config.target)
        doubtful = [entry for entry in context.candidates if examples[entry.path].worth == "doubtful"]
        judged = doubtful[::-1][: self._config.criteria.max_doubtful][::-1]
        verdicts = judge.choose(
            CURATE_DATA,
            [_option(examples[entry.path]) for entry in judged],
            labels=(KEEP,),
            stage=self.name,
        )
        verdict_of = dict(zip((entry.path for entry in judged), verdicts, strict=True))
        decisions = [
            self._decide(entry, examples[entry.path], verdict_of.get(entry.path))
            for entry in context.candidates
        ]
        included = {decision.subject.path for decision in decisions if decision.included}
        return replace(
            context,
            files=tuple(entry for entry in context.candidates if entry.path in included),
            detail_chosen=True,
            decisions=(*context.decisions, *decisions),
        )

    def _decide(self, entry: Candidate, example: Example, verdict: Verdict | None) -> Decision:
        if verdict is not None:
            included, reason = verdict.label == KEEP, f"{example.reason}; {verdict.reason}"
        elif example.worth == "doubtful":
            included, reason = False, f"{example.reason}; more are doubtful than the plan lets a model judge"
        else:
            included, reason = example.worth != "out", example.reason
        return Decision(
            stage=self.name,
            subject=Subject(path=entry.path),
            included=included,
            reason=reason,
            verdict=verdict,
        )


def _option(example: Example) -> Option:
    """The question, the answer, and the final change."""
    row = example.last.call
    changed = ", ".join(file.path for file in example.task.gold.files) if example.task.gold else ""
    text = (
        f"task: {' '.join(example.task.run.description.split())[:TASK_CHARS]}\n"
        f"asked about: {row.site.item or 'the whole task'}\n"
        f"answered: {' '.join(example.answer.split())[:ANSWER_CHARS]}\n"
        f"changed in the end: {changed}\n"
    )
    return Option(key=example.key, name=example.key, text=text, score=0.5)
