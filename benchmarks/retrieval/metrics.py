"""How good an order of files is for a task whose files are known."""

from collections.abc import Sequence

from msgspec import Struct

DEPTHS = (1, 3, 5, 10, 20, 50)
ALL_WITHIN = 10
HIT_WITHIN = 5


class Score(Struct, frozen=True, kw_only=True):
    """Of one task, or the mean of many; every figure is between 0 and 1."""

    recall: tuple[float, ...]
    """For each of `DEPTHS`: the share of the task's files among the first so many."""
    first: float
    """One divided by the place of the first of the task's files that is found, places counted from 1; its mean is MRR."""
    all_found: float
    """1 where all of the task's files are among the first `ALL_WITHIN`."""
    hit: float
    """1 where one of the task's files is among the first `HIT_WITHIN`."""


def score_of(wanted: Sequence[str], ranked: Sequence[str]) -> Score:
    """How `ranked`, best first, does for a task that changes the files `wanted`; of a path told twice the first counts."""
    places: dict[str, int] = {}
    for path in ranked:
        places.setdefault(path, len(places) + 1)
    found = sorted(places[path] for path in wanted if path in places)

    def within(depth: int) -> int:
        return sum(place <= depth for place in found)

    return Score(
        recall=tuple(within(depth) / len(wanted) for depth in DEPTHS),
        first=1 / found[0] if found else 0.0,
        all_found=float(within(ALL_WITHIN) == len(wanted)),
        hit=float(within(HIT_WITHIN) > 0),
    )


def mean_of(scores: Sequence[Score]) -> Score:
    """Each figure's mean; every task counts the same."""
    count = len(scores)
    return Score(
        recall=tuple(sum(values) / count for values in zip(*(one.recall for one in scores), strict=True)),
        first=sum(one.first for one in scores) / count,
        all_found=sum(one.all_found for one in scores) / count,
        hit=sum(one.hit for one in scores) / count,
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
