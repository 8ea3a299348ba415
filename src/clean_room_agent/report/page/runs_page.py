"""The content of the page of all runs: how they ended over time and by model, where they were lost, what they cost."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.db.raw.analysis import RunCost
from clean_room_agent.report.stats import WHAT_IS_LOST
from clean_room_agent.report.trace import seconds_between
from clean_room_agent.training.credit import STAGES, Waterfall

End = Literal["good", "unproven", "part", "bad", "other"]
ENDS: Mapping[RunStatus, End] = {
    RunStatus.COMPLETE: "good",
    RunStatus.UNPROVEN: "unproven",
    RunStatus.PARTIAL: "part",
    RunStatus.NEEDS_HUMAN: "part",
    RunStatus.FAILED: "bad",
}
"""Every other status counts as `other`: not ended."""
SAID: Mapping[End, str] = {
    "good": "complete",
    "unproven": "unproven: no test shows it",
    "part": "partial, or waits for a person",
    "bad": "failed",
    "other": "not ended",
}
MOST_COLUMNS = 60
PERIODS = ((10, "day"), (7, "month"), (4, "year"))
"""How many characters of a timestamp name a period, the shortest period first."""


class Tally(Struct, frozen=True, kw_only=True):
    """Runs of one period or model, by how they ended."""

    name: str
    good: int
    unproven: int
    part: int
    bad: int
    other: int
    tokens: int
    seconds: float
    """Of the ended ones."""

    @property
    def runs(self) -> int:
        """All of them."""
        return self.good + self.unproven + self.part + self.bad + self.other

    @property
    def ends(self) -> tuple[tuple[End, int], ...]:
        """By how they ended, the best first."""
        return (
            ("good", self.good),
            ("unproven", self.unproven),
            ("part", self.part),
            ("bad", self.bad),
            ("other", self.other),
        )


class RunRow(Struct, frozen=True, kw_only=True):
    """One run."""

    task_id: str
    title: str
    status: str
    end: End
    began: str
    model: str
    calls: int
    tokens: int
    seconds: float | None
    """None if it has not ended."""


class LostRow(Struct, frozen=True, kw_only=True):
    """A stage at which runs were lost."""

    stage: str
    runs: int
    what: str


class RunsPage(Struct, frozen=True, kw_only=True):
    """The page of all runs."""

    total: Tally
    unit: str
    """What a period is: day, month, year."""
    periods: tuple[Tally, ...]
    models: tuple[Tally, ...]
    lost: tuple[LostRow, ...]
    unattributed: tuple[tuple[str, int], ...]
    """(why a failed run is charged to no stage, how many)."""
    runs: tuple[RunRow, ...]
    """The newest first."""


def runs_page(costs: Sequence[RunCost], waterfall: Waterfall) -> RunsPage:
    """The page.

    Raises:
        RecordError: a timestamp in the record is invalid.
    """
    rows = [_row(cost) for cost in costs]
    letters, unit = next(
        (one for one in PERIODS if len({row.began[: one[0]] for row in rows}) <= MOST_COLUMNS), PERIODS[-1]
    )
    return RunsPage(
        total=_tally("all", rows),
        unit=unit,
        periods=_tallies((row.began[:letters], row) for row in rows),
        models=_tallies((row.model or "not recorded", row) for row in rows),
        lost=tuple(
            LostRow(stage=stage, runs=waterfall.by_stage[stage], what=WHAT_IS_LOST[stage]) for stage in STAGES
        ),
        unattributed=tuple((str(why), count) for why, count in waterfall.unattributed.items()),
        runs=tuple(reversed(rows)),
    )


def _row(cost: RunCost) -> RunRow:
    words = cost.description.strip().split("\n")
    return RunRow(
        task_id=cost.task_id,
        title=words[0],
        status=cost.status.value,
        end=ENDS.get(cost.status, "other"),
        began=cost.timestamp,
        model=cost.model,
        calls=cost.calls,
        tokens=cost.tokens,
        seconds=seconds_between(cost.timestamp, cost.completed_at),
    )


def _tallies(named: Iterable[tuple[str, RunRow]]) -> tuple[Tally, ...]:
    groups: dict[str, list[RunRow]] = {}
    for name, row in named:
        groups.setdefault(name, []).append(row)
    return tuple(_tally(name, groups[name]) for name in sorted(groups))


def _tally(name: str, rows: Sequence[RunRow]) -> Tally:
    counts = Counter(row.end for row in rows)
    return Tally(
        name=name,
        good=counts["good"],
        unproven=counts["unproven"],
        part=counts["part"],
        bad=counts["bad"],
        other=counts["other"],
        tokens=sum(row.tokens for row in rows),
        seconds=sum(row.seconds or 0.0 for row in rows),
    )
