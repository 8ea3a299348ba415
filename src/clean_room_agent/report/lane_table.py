"""A run's time lanes for a terminal: one bar per lane, as wide as fits."""

import math
from collections.abc import Mapping

from msgspec import Struct
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from clean_room_agent.report.time_lanes import LaneUse, TimeLane, TimeLanes

MOST_COLUMNS = 60
LEAST_COLUMNS = 10
"""Of a bar. If that does not fit, there is no bar."""
FIGURES = 18
"""Columns of the two figures after a bar."""
COLOURS: Mapping[LaneUse, str] = {"own": "", "index": "magenta", "tests": "green", "model": "blue"}
REST = "none of these"
BUSY, IDLE = "█", "·"


class LaneTable(Struct, frozen=True):
    """Draws the lanes, with their seconds, and what they mean."""

    times: TimeLanes

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """One line per lane, then the milestones."""
        del console
        names = max(len(REST), *(len(lane.name) for lane in self.times.lanes))
        columns = min(MOST_COLUMNS, options.max_width - names - FIGURES - 2)
        if columns < LEAST_COLUMNS:
            columns = 0
        yield Text(f"{'':{names}}  {'':{columns}}{'seconds':>9}{'alone':>9}", style="dim")
        for lane in self.times.lanes:
            figures = f"{lane.seconds:9.1f}{lane.alone:9.1f}"
            yield Text.assemble(
                f"{lane.name:{names}}  ",
                (_bar(lane, self.times.seconds, columns), COLOURS[lane.use]),
                figures,
            )
        yield Text(f"{REST:{names}}  {'':{columns}}{self.times.rest:9.1f}", style="dim")
        yield Text("")
        yield from (Text(line) for line in self.times.milestones)
        yield Text("alone: nothing else was in progress", style="dim")
        if self.times.pauses:
            yield Text(f"left out: {self.times.paused:.0f} s in which nothing was recorded", style="dim")
        if self.times.missing:
            yield Text(self.times.missing, style="yellow")


def render_lanes(times: TimeLanes | None) -> RenderableType:
    """The lanes for a terminal."""
    return Text("no times are recorded here") if times is None else LaneTable(times)


def _bar(lane: TimeLane, seconds: float, columns: int) -> str:
    """The bar; a column is busy if the lane was active at any time in it."""
    cells = [IDLE] * columns
    for one in lane.stretches if columns else ():
        first = min(int(one.start / seconds * columns), columns - 1)
        last = math.ceil((one.start + one.seconds) / seconds * columns)
        for column in range(first, min(max(last, first + 1), columns)):
            cells[column] = BUSY
    return "".join(cells)
