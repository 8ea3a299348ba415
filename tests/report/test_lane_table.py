"""Time lanes in terminals of any width."""

import pytest
from rich.cells import cell_len
from rich.console import Console

from clean_room_agent.report.lane_table import BUSY, IDLE, render_lanes
from clean_room_agent.report.time_lanes import Stretch, TimeLane, TimeLanes

LANES = TimeLanes(
    seconds=10.0,
    ticks=(0.0, 5.0),
    lanes=(
        TimeLane(
            name="index",
            use="index",
            stretches=(Stretch(start=0, seconds=5, detail=""),),
            seconds=5.0,
            alone=4.0,
        ),
        TimeLane(
            name="git",
            use="own",
            stretches=(Stretch(start=9.999, seconds=0.001, detail="commit"),),
            seconds=0.001,
            alone=0.0,
        ),
    ),
    first_question=4.0,
    first_edit=None,
    from_enter=True,
    rest=1.0,
    pauses=1,
    paused=4000.0,
    missing="",
)


def shown(width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(render_lanes(LANES))
    return capture.get().splitlines()


def test_a_bar_is_busy_where_its_lane_is_and_what_is_short_is_seen() -> None:
    _, index, git, rest, *said = shown(56)
    assert index == f"index          {BUSY * 12}{IDLE * 11}      5.0      4.0"
    assert git == f"git            {IDLE * 22}{BUSY}      0.0      0.0"
    assert rest.split() == ["none", "of", "these", "1.0"]
    assert "4.0 s from Enter to the first question" in said
    assert "left out: 4000 s in which nothing was recorded" in said


@pytest.mark.parametrize("width", [36, 40, 80, 300])
def test_the_table_is_as_wide_as_its_terminal_at_most(width: int) -> None:
    lines = shown(width)
    assert max(cell_len(line) for line in lines) <= width
    assert any(line.startswith("index") and line.endswith("5.0      4.0") for line in lines)
