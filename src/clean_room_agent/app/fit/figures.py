"""What was measured of a model, and when a figure is clear enough to ask no more.

A share is clear by Wald's sequential test: with 5 % right a form is not worth asking, with 30 % it is, and each answer is
evidence for one of the two:

    right        ln(.30 / .05) = +1.79
    not right    ln(.70 / .95) = -0.31

The sum says enough at ln(.9 / .1) = 2.20 to either side: after two right answers, or after eight that are not. Answers none
of which could be used, and a judge that says the same of all, say enough sooner.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Literal, NamedTuple

from msgspec import Struct, field

from clean_room_agent.artifacts.context import Role

FigureName = Literal["function", "masked", "lines", "redrawn", "edit", "plan", "judgment"]


class Measured(Struct, frozen=True, kw_only=True):
    """What became of one made-up task."""

    task: str
    held: bool
    """Whether it is never used to choose."""
    applied: bool
    """Whether the answer could be used as it was asked for."""
    right: bool
    tokens: int = 0
    """That were written."""
    read: int = 0
    """Tokens of the question, where its time is measured."""
    over: bool = False
    """Whether the answer is longer than answers usually may be."""
    kind: str = ""
    """What tells its answers apart: of a drawn one, its temperature."""
    score: float | None = None
    """Of a judgment: 1 for a verdict that lets something in, else 0."""


class Speed(Struct, frozen=True, kw_only=True):
    """Work that was done in a time."""

    work: float = 0.0
    """Tokens; those that are read count a tenth."""
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return self.work / self.seconds if self.seconds else 0.0

    def plus(self, work: float, seconds: float) -> "Speed":
        """With more work."""
        return Speed(work=self.work + work, seconds=self.seconds + seconds)


class Bounds(NamedTuple):
    """When a figure is clear, and how much is asked at most."""

    role: Role
    low: float
    """With this share right it is of no use."""
    high: float
    """With this share right it is."""
    least: int
    """Tasks that choose before it may be clear."""
    most: int
    """Tasks that are asked, the held ones included."""
    tokens: int
    """What one of them may take, in tokens that are written; those that are read count a tenth."""


FIGURES: Mapping[FigureName, Bounds] = MappingProxyType(
    {
        "function": Bounds("coding", 0.05, 0.3, 5, 12, 110),
        "masked": Bounds("coding", 0.05, 0.3, 4, 12, 70),
        "lines": Bounds("coding", 0.05, 0.3, 4, 6, 90),
        "redrawn": Bounds("coding", 0.02, 0.2, 2, 4, 110),
        "edit": Bounds("coding", 0.15, 0.6, 3, 6, 220),
        "plan": Bounds("reasoning", 0.25, 0.8, 2, 6, 500),
        "judgment": Bounds("classifier", 0.5, 0.8, 8, 24, 30),
    }
)
"""In the order in which they are measured."""
CLEAR = math.log(0.9 / 0.1)
Z = 1.28
"""Of an interval that holds the truth four times out of five."""
CLEARLY_MORE = 2
"""Right answers by which another temperature than the usual one has to lead."""
LEAST_AUC = 0.65
"""From here on a judgment tells more than the ranking does."""


class Fit(Struct, kw_only=True, forbid_unknown_fields=True):
    """What was measured of one model. It grows, so that measuring can be interrupted."""

    version: int
    model: str
    digest: str
    """Of its files; "" where the server has none."""
    began: str
    """UTC, ISO 8601."""
    fills: bool | None = None
    """Whether it fills gaps on its server at all; None until that was asked."""
    figures: dict[FigureName, list[Measured]] = field(default_factory=dict)
    ended: list[FigureName] = field(default_factory=list)
    """The figures that are measured, or need not be."""
    widths: dict[int, Speed] = field(default_factory=dict)
    """By how many answers were asked for at a time."""
    gaps: dict[str, Speed] = field(default_factory=dict)
    """By how the gaps of one place were asked for: `in-turn`, `side-by-side`."""

    def choosing(self, name: FigureName) -> list[Measured]:
        """The tasks that may be used to choose."""
        return [one for one in self.figures.get(name, []) if not one.held]

    def held(self, name: FigureName) -> list[Measured]:
        """The others."""
        return [one for one in self.figures.get(name, []) if one.held]


def share(tasks: Sequence[Measured]) -> float:
    """How many of them were right; 0 of none."""
    return sum(one.right for one in tasks) / len(tasks) if tasks else 0.0


def evidence(name: FigureName, tasks: Sequence[Measured]) -> float:
    """How much speaks for the figure's being of use (above 0), or against it."""
    bounds = FIGURES[name]
    right = sum(one.right for one in tasks)
    gain, loss = math.log(bounds.high / bounds.low), math.log((1 - bounds.high) / (1 - bounds.low))
    return right * gain + (len(tasks) - right) * loss


def is_clear(name: FigureName, tasks: Sequence[Measured]) -> bool:
    """Whether more of those that choose would hardly change what is chosen."""
    if len(tasks) < FIGURES[name].least:
        return False
    if name == "judgment":
        found = auc(tasks)
        says_the_same = len({one.score for one in tasks}) == 1
        return found is not None and (
            says_the_same or abs(found - LEAST_AUC) > Z * auc_deviation(tasks, found)
        )
    if name == "redrawn":
        return not _may_lead(tasks)
    return not any(one.applied for one in tasks) or abs(evidence(name, tasks)) >= CLEAR


def right_by_temperature(tasks: Sequence[Measured]) -> dict[str, int]:
    """Right answers of each temperature, in the order in which they were asked: the usual one first."""
    return {
        kind: sum(one.right for one in tasks if one.kind == kind)
        for kind in dict.fromkeys(one.kind for one in tasks)
    }


def _may_lead(tasks: Sequence[Measured]) -> bool:
    """Whether the answers that are left could make another temperature lead the usual one."""
    usual, *others = right_by_temperature(tasks).values()
    left = (FIGURES["redrawn"].most - len(tasks)) // (len(others) + 1)
    return any(right + left >= usual + CLEARLY_MORE for right in others)


def auc(tasks: Sequence[Measured]) -> float | None:
    """How often what is needed scores more than what is not; None if one of the two is missing. A judgment is `right` about a
    needed file if it says yes, and about another if it says no; `kind` says which it is.
    """
    needed = [one.score for one in tasks if one.kind == "needed" and one.score is not None]
    others = [one.score for one in tasks if one.kind != "needed" and one.score is not None]
    if not needed or not others:
        return None
    wins = sum((one > other) + (one == other) / 2 for one, other in product(needed, others))
    return wins / (len(needed) * len(others))


def auc_deviation(tasks: Sequence[Measured], found: float) -> float:
    """The standard deviation of an AUC (Hanley and McNeil 1982)."""
    needed = sum(one.kind == "needed" for one in tasks)
    others = len(tasks) - needed
    first, second = found / (2 - found), 2 * found * found / (1 + found)
    own = found * (1 - found)
    spread = own + (needed - 1) * (first - found * found) + (others - 1) * (second - found * found)
    return math.sqrt(max(spread, 0.0) / (needed * others)) if needed and others else 1.0
