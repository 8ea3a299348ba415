"""Candidates of the direct route: what was answered for a place, and what the tests said; which of several counts."""

import re
from collections.abc import Sequence

from msgspec import Struct

from clean_room_agent.orchestrator.direct.goal_results import GoalRun
from clean_room_agent.orchestrator.run import Tried
from clean_room_agent.orchestrator.steps.attempt import ChangeJudgment
from clean_room_agent.orchestrator.steps.checked_attempt import normalised_diff

MOST_TRIED = 3
"""Changes of which the planned route is told."""
MOST_CHARACTERS = 160
"""Of such a change, and of its result."""


class TriedAnswer(Struct, frozen=True, kw_only=True):
    """One answer, and what came of it."""

    number: int
    """From 1."""
    item: str
    """What was asked: the place, the form and how it was put."""
    path: str
    symbol: str
    """The definition, qualified."""
    base: int = 0
    """The candidate from which it was gone on; 0: the run's head."""
    answer: str
    call_id: int
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_ms: int = 0
    likelihood: float | None = None
    """Mean log-probability of the answer's tokens; None if the server gives none."""
    fault: str = ""
    """Why nothing was tested; "" if it was."""
    text: str = ""
    """The file with it, for a candidate to go on from; "" if nothing was tested."""
    commit: str = ""
    diff: str = ""
    goals: GoalRun | None = None
    broken: str = ""
    """The documented example that it breaks though its goal tests are green; "" for none."""
    judgment: ChangeJudgment | None = None
    """Of the step's tests, for one whose goal tests are all green."""

    def is_green(self, goals: int) -> bool:
        """Whether each of so many goal tests passes."""
        return self.goals is not None and len(self.goals.green) == goals

    @property
    def holds(self) -> bool:
        """Whether the step's tests pass as well."""
        return self.judgment is not None and self.judgment.verdict.passed


def likeliest_first(candidates: Sequence[TriedAnswer]) -> list[TriedAnswer]:
    """By the likelihood of the answer, then by the size of the change, then by number."""
    return sorted(candidates, key=lambda one: (-_likelihood(one), _size(one), one.number))


def choose(candidates: Sequence[TriedAnswer]) -> TriedAnswer | None:
    """Of those that hold, the likeliest of the change that most of them make; None if none holds."""
    held = [one for one in candidates if one.holds]
    if not held:
        return None
    diffs = [normalised_diff(one.diff) for one in held]
    most = max(map(diffs.count, diffs))
    return likeliest_first([one for one, diff in zip(held, diffs, strict=True) if diffs.count(diff) == most])[
        0
    ]


def in_vain(candidates: Sequence[TriedAnswer]) -> tuple[Tried, ...]:
    """The changes that were tried, a line each: those with most green goal tests first, and one for each result."""
    tested = [one for one in likeliest_first(candidates) if one.goals is not None]
    found: dict[str, Tried] = {}
    for one in sorted(tested, key=lambda one: -len(one.goals.green) if one.goals else 0):
        gave = "; ".join(what for _, what in one.goals.said) if one.goals else ""
        result = one.judgment.verdict.reason if one.judgment else gave
        lines = [line[1:].strip() for line in one.diff.splitlines() if re.match(r"\+(?!\+\+ )", line)]
        words = f"{one.symbol} with {cut(' / '.join(lines))}: {cut(result)}"
        found.setdefault(result, Tried(path=one.path, words=words))
    return tuple(found.values())[:MOST_TRIED]


def cut(text: str) -> str:
    """The text in one line of a bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 1]}…"


def _likelihood(one: TriedAnswer) -> float:
    return float("-inf") if one.likelihood is None else one.likelihood


def _size(one: TriedAnswer) -> int:
    return sum(line.startswith(("+", "-")) for line in one.diff.splitlines())
