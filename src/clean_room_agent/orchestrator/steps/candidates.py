"""Chooses among the candidates drawn from one prompt: by their tests, then by what most of them agree on.

At equal cost, only execution separates good samples of small models from bad ones (arXiv 2606.16999); agreement breaks ties.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clean_room_agent.orchestrator.steps.attempt import Attempt
from clean_room_agent.orchestrator.testing.comparison import passes
from clean_room_agent.orchestrator.testing.results import TestRun

PLACE = re.compile(r"(@@ -\S+) .*")
"""The head of a hunk; where it stands afterwards depends on the blank lines above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What the choice looks at of one attempt."""

    number: int
    """Of the attempt, from 1."""
    may_stay: bool
    """Whether its tests passed; of a last change, whether it also turned a goal test green."""
    goals: int
    """Goal tests: those that were red before the step."""
    green: int
    """Goal tests that pass now."""
    newly: int
    """Tests that fail newly."""
    tested: bool
    placed: bool
    """Whether its edits could be read, whatever became of them."""
    diff: str

    @property
    def is_full(self) -> bool:
        """Whether no other can do better: all goal tests are green, and nothing is lost."""
        return self.may_stay and self.green == self.goals

    @property
    def rank(self) -> tuple[bool, int, bool, bool, bool]:
        """What the tests say; the greater, the better."""
        return self.may_stay, self.green, self.newly == 0, self.tested, self.placed


def candidate(attempt: Attempt, number: int, before: TestRun | None) -> Candidate:
    """The attempt of that number, as the choice sees it; `before` ran before the step."""
    goals = frozenset() if before is None else before.red()
    after = attempt.judgment.tests if attempt.judgment else None
    red = frozenset() if after is None else after.red()
    green = 0 if after is None else sum(name not in red and passes(name, after) for name in goals)
    return Candidate(
        number=number,
        may_stay=attempt.passed and bool(green or not attempt.unfinished),
        goals=len(goals),
        green=green,
        newly=len(attempt.judgment.verdict.newly_failing) if attempt.judgment else 0,
        tested=after is not None,
        placed=attempt.change.result is not None,
        diff=attempt.change.diff,
    )


def choose(candidates: Sequence[Candidate]) -> Candidate:
    """The best: by its tests, then the smallest of the largest group of equal changes, then the first."""
    top = max(one.rank for one in candidates)
    best = [one for one in candidates if one.rank == top]
    return min(best, key=lambda one: (-_agreeing(one, best), _size(one), one.number))


def why_not(loser: Candidate, candidates: Sequence[Candidate]) -> str:
    """In one line, in what the chosen one of `candidates` is better."""
    best = choose(candidates)
    name = f"attempt {best.number}"
    goals = f"{name} has {best.green} of {best.goals} goal tests green, this one {loser.green}"
    turned_less = loser.tested and not loser.newly and loser.green < best.green
    said = (
        goals if turned_less else f"{name} passed, this one did not",
        goals,
        f"{name} broke no test, this one {loser.newly}",
        f"the edits of {name} came to the tests",
        f"the edits of {name} could be read",
    )
    for ours, theirs, text in zip(best.rank, loser.rank, said, strict=True):
        if ours != theirs:
            return text
    if normalised_diff(best.diff) == normalised_diff(loser.diff):
        return f"the same change as {name}"
    equal = [one for one in candidates if one.rank == best.rank]
    if _agreeing(best, equal) > _agreeing(loser, equal):
        return f"more candidates made the change of {name}"
    return f"{name} changes less" if _size(best) < _size(loser) else f"{name} came first"


def normalised_diff(diff: str) -> str:
    """Equal for diffs that differ in blank lines, in white space at line ends, and in what git names the blobs."""
    lines = (PLACE.sub(r"\1", line).rstrip() for line in diff.splitlines() if not line.startswith("index "))
    return "\n".join(line for line in lines if line not in {"", "+", "-"})


def _agreeing(one: Candidate, others: Sequence[Candidate]) -> int:
    same = normalised_diff(one.diff)
    return sum(normalised_diff(other.diff) == same for other in others)


def _size(one: Candidate) -> tuple[int, int]:
    """Lines that change, and characters."""
    return sum(line.startswith(("+", "-")) for line in one.diff.splitlines()), len(one.diff)
