"""What to do when an attempt did not work: one pure function, the first rule that matches wins."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.artifacts.tasks import RefinementRequest

ActionKind = Literal["stop", "refine", "retry", "skip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSeen:
    """What the decision looks at of one attempt."""

    outcome: AttemptOutcome
    fingerprint: str
    """Of the answer's text: an answer given twice is not worth a third test run."""
    missing: RefinementRequest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is left for the step and the run."""

    attempts_left: int
    refinements_left: int
    budget_spent: str = ""
    """Which budget of the run is used up; "" while none is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What happens next, and the rule that said so."""

    kind: ActionKind
    rule: str
    vary: bool = False
    """Whether the next answer must be drawn differently, because the last one was given before or was unreadable."""
    more_room: bool = False
    """Whether the next answer gets more of the window, because an answer of this step was cut off."""


def decide(attempts: Sequence[AttemptSeen], limits: Limits) -> Action:
    """The action after the newest (last) of a step's failed attempts."""
    newest = attempts[-1]
    cut = any(seen.outcome is AttemptOutcome.TRUNCATED for seen in attempts)
    if limits.budget_spent:
        return Action(kind="stop", rule=f"budget spent: {limits.budget_spent}")
    if (
        newest.outcome is AttemptOutcome.INSUFFICIENT_CONTEXT
        and newest.missing is not None
        and limits.refinements_left > 0
        and limits.attempts_left > 0
    ):
        return Action(kind="refine", rule="insufficient_context with evidence", more_room=cut)
    if limits.attempts_left > 0:
        if newest.outcome is AttemptOutcome.TRUNCATED:
            return Action(kind="retry", rule="the answer was cut off: more room for it", more_room=True)
        if is_repeat(attempts):
            return Action(kind="retry", rule="the same answer again: draw another", vary=True, more_room=cut)
        unreadable = newest.outcome in {AttemptOutcome.UNREADABLE, AttemptOutcome.NO_EDITS}
        rule = f"attempts left: {limits.attempts_left}"
        return Action(kind="retry", rule=rule, vary=unreadable, more_room=cut)
    return Action(kind="skip", rule="attempts are used up")


def is_repeat(attempts: Sequence[AttemptSeen]) -> bool:
    """Whether the newest answer is the same as an earlier one of this step."""
    newest = attempts[-1].fingerprint
    return bool(newest) and any(seen.fingerprint == newest for seen in attempts[:-1])
