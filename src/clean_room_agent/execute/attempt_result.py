"""Describes the result of an attempt whose edits were applied and tested, for the next attempt's prompt."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from clean_room_agent.artifacts.evidence import (
    MOST_CHARACTERS,
    Evidence,
    FailingTest,
    describe_evidence,
    describe_tests,
)

GoalState = Literal["passes now", "fails as before", "fails in another way", "did not run"]
MAX_LISTED = 10
"""Tests of one state."""
LISTED_SHARE = 10
"""The names of the tests of one state get at most one part in so many of the bound."""


class Goal(Struct, frozen=True, kw_only=True):
    """A test that failed before the step, and how it ends now."""

    name: str
    state: GoalState
    failing: FailingTest | None = None
    """As it fails now."""


class TestedAttempt(Struct, frozen=True, kw_only=True):
    """What the tests showed after an attempt, compared with before the step."""

    __test__ = False

    reason: str
    """The gate's reason, in one line."""
    goals: tuple[Goal, ...]
    """The tests that failed before the step."""
    newly_failing: tuple[FailingTest, ...] = ()
    """Passed before the step."""
    new: tuple[FailingTest, ...] = ()
    """Did not run before the step, and fail."""
    missing: tuple[str, ...] = ()
    """Passed before the step, and did not run."""
    after: Evidence
    """All that the tests show."""


def describe_result(tested: TestedAttempt, *, bound: int = MOST_CHARACTERS) -> str:
    """The reason, the state of each goal test, and each newly or differently failing test with its message."""
    listed = bound // LISTED_SHARE
    lines = [f"The edits were applied and tested: {tested.reason}.", *_goal_lines(tested.goals, listed)]
    if tested.missing:
        lines.append(f"Did not run, and passed before: {_first_names(tested.missing, listed)}")
    shown = [
        *(("Newly failing test", test) for test in tested.newly_failing),
        *(("Failing test, which did not run before", test) for test in tested.new),
        *(
            ("Goal test, which fails in another way now", goal.failing)
            for goal in tested.goals
            if goal.failing
        ),
    ]
    left = bound - sum(len(line) + 1 for line in lines)
    if shown:
        lines.append(describe_tests(shown, bound=left))
    elif not tested.goals:
        lines.append(describe_evidence(tested.after, bound=left))
    return "\n".join(filter(None, lines))


def _goal_lines(goals: Sequence[Goal], listed: int) -> list[str]:
    if not goals:
        return []
    states: dict[GoalState, list[str]] = {}
    for goal in goals:
        states.setdefault(goal.state, []).append(goal.name)
    passing = len(states.get("passes now", ()))
    lines = [f"Goal tests (they failed before this step): {passing} of {len(goals)} pass now."]
    return lines + [f"- {state}: {_first_names(names, listed)}" for state, names in states.items()]


def _first_names(names: Sequence[str], most: int) -> str:
    """The first names, in about `most` characters, and how many more there are."""
    shown: list[str] = []
    for name in names[:MAX_LISTED]:
        if shown and sum(map(len, shown)) + len(name) > most:
            break
        shown.append(name)
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ", ".join(shown) + more
