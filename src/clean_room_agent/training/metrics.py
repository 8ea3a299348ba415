"""Metrics: what an answer is worth to the task, 0 to 1, by prompt. The gate scores verdicts itself, by probability.

They never use the loss, or how many answers are readable: in a trial both improved while no answer named the right
file.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from clean_room_agent.execute.plan_prompts import AdjustmentAnswer, MetaPlanAnswer, PartPlanAnswer
from clean_room_agent.training.dataset import Row
from clean_room_agent.training.edit_steps import EditSteps


class Metric(Protocol):
    """Scores the answers of one prompt."""

    def fault(self, row: Row, wanted: Any) -> str:
        """Why no answer to this row can be scored; "" if answers can."""

    def limit(self, row: Row) -> str:  # noqa: ARG002 - of most metrics
        """What part of an answer to this row cannot be scored; "" if all of it can. Called after `fault`."""
        return ""

    def score(self, row: Row, wanted: Any, answer: Any) -> float:
        """The score of the answer, 0 to 1."""


class NamesFound(Metric):
    """The share of the files and definitions of the right analysis that the answer names."""

    def fault(self, row: Row, wanted: Any) -> str:  # noqa: ARG002 - as the protocol says
        """Why the row cannot be scored; "" if it can."""
        return "" if wanted.areas or wanted.symbols else "its right answer names nothing"

    def score(self, row: Row, wanted: Any, answer: Any) -> float:  # noqa: ARG002
        """The recall of names."""
        return _recall([*wanted.areas, *wanted.symbols], [*answer.areas, *answer.symbols])


class FilesNamed(Metric):
    """The share of the files of the right plan that the answer's plan names."""

    def fault(self, row: Row, wanted: Any) -> str:  # noqa: ARG002
        """Why the row cannot be scored; "" if it can."""
        return "" if _files(wanted) else "its right answer names no file"

    def score(self, row: Row, wanted: Any, answer: Any) -> float:  # noqa: ARG002
        """The recall of files."""
        return _recall(_files(wanted), _files(answer))


def _files(plan: MetaPlanAnswer | PartPlanAnswer | AdjustmentAnswer) -> tuple[str, ...]:
    if isinstance(plan, MetaPlanAnswer):
        return tuple(path for part in plan.parts for path in part.files)
    return tuple(file.path for step in plan.steps for file in step.files)


def _recall(wanted: Iterable[str], named: Iterable[str]) -> float:
    due = set(wanted)
    return len(due & set(named)) / len(due)


METRICS: Mapping[str, Metric] = {
    "task_analysis": NamesFound(),
    "meta_plan": FilesNamed(),
    "part_plan": FilesNamed(),
    "adjustment": FilesNamed(),
    "implement": EditSteps(),
}
