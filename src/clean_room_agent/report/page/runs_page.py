"""The content of the page of all runs: how they ended over time and by model, where they were lost, what they cost."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.db.raw.analysis import RunCost
from clean_room_agent.report.stats import WHAT_IS_LOST
from clean_room_agent.report.trace import seconds_between
from clean_room_agent.training.credit import STAGES, Waterfall

MOST_DAYS = 60


class Tally(Struct, frozen=True, kw_only=True):
    """Runs of one period or model, by how they ended."""

    name: str
    runs: int
    complete: int
    unproven: int
    partial: int
    """Those that wait for a person, too."""
    failed: int
    tokens: int
    seconds: float
    """Of the ended ones."""


class RunsPage(Struct, frozen=True, kw_only=True):
    """The page of all runs."""

    total: Tally
    periods: tuple[Tally, ...]
    """By day, or by month if there are many days."""
    models: tuple[Tally, ...]
    lost: tuple[tuple[str, int, str], ...]
    """(stage, how many runs were lost there, what was lost)."""
    unattributed: tuple[tuple[str, int], ...]
    """(why a failed run is charged to no stage, how many)."""
    runs: tuple[tuple[RunCost, float | None], ...]
    """The newest first, each with its seconds; None if it has not ended."""


def runs_page(costs: Sequence[RunCost], waterfall: Waterfall) -> RunsPage:
    """The page.

    Raises:
        RecordError: a timestamp in the record is invalid.
    """
    many = len({cost.timestamp[:10] for cost in costs}) > MOST_DAYS
    return RunsPage(
        total=_tally("all", costs),
        periods=_tallies((cost.timestamp[: 7 if many else 10], cost) for cost in costs),
        models=_tallies((cost.model or "not recorded", cost) for cost in costs),
        lost=tuple((stage, waterfall.by_stage[stage], WHAT_IS_LOST[stage]) for stage in STAGES),
        unattributed=tuple((str(why), count) for why, count in waterfall.unattributed.items()),
        runs=tuple((cost, _seconds(cost)) for cost in reversed(costs)),
    )


def _seconds(cost: RunCost) -> float | None:
    return seconds_between(cost.timestamp, cost.completed_at)


def _tallies(named: Iterable[tuple[str, RunCost]]) -> tuple[Tally, ...]:
    groups: dict[str, list[RunCost]] = {}
    for name, cost in named:
        groups.setdefault(name, []).append(cost)
    return tuple(_tally(name, groups[name]) for name in sorted(groups))


def _tally(name: str, costs: Sequence[RunCost]) -> Tally:
    ended = Counter(cost.status for cost in costs)
    return Tally(
        name=name,
        runs=len(costs),
        complete=ended[RunStatus.COMPLETE],
        unproven=ended[RunStatus.UNPROVEN],
        partial=ended[RunStatus.PARTIAL] + ended[RunStatus.NEEDS_HUMAN],
        failed=ended[RunStatus.FAILED],
        tokens=sum(cost.tokens for cost in costs),
        seconds=sum(_seconds(cost) or 0.0 for cost in costs),
    )
