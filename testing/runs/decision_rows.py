"""Decisions as the record keeps them, made from the values of its columns."""

from typing import Any

from clean_room_agent.artifacts.context import Judgment, Subject
from clean_room_agent.db.raw.passes import DecisionRow, PlanDecisionRow


def decision_row(**columns: Any) -> DecisionRow:
    """A decision about a candidate."""
    return DecisionRow(subject=_taken(Subject, columns), judgment=_taken(Judgment, columns), **columns)


def plan_decision_row(**columns: Any) -> PlanDecisionRow:
    """A decision on the way to a plan."""
    return PlanDecisionRow(judgment=_taken(Judgment, columns), **columns)


def _taken(kind: Any, columns: dict[str, Any]) -> Any:
    """The part, with what is taken out of the columns for it."""
    names = kind.__struct_fields__
    return kind(**{name: columns.pop(name) for name in names if name in columns})
