import io

from rich.console import Console
from rich.text import Text

from clean_room_agent.report.figure_table import FigureTable


def drawn(width: int) -> list[str]:
    table = FigureTable(name="call", heads=("rules", "full"))
    table.add(Text("p1/s1/1, 32,768 tokens"))
    table.add(Text("16 adjustment_step_viability"), "1,634", Text("11%"))
    file = io.StringIO()
    Console(file=file, width=width).print(table, soft_wrap=True)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_names_stand_beside_their_figures_where_there_is_room() -> None:
    assert drawn(60) == [
        "call                         rules full",
        "p1/s1/1, 32,768 tokens",
        "16 adjustment_step_viability 1,634  11%",
    ]


def test_where_there_is_none_each_name_is_a_line_of_its_own() -> None:
    assert drawn(30) == [
        "call",
        "  rules full",
        "p1/s1/1, 32,768 tokens",
        "16 adjustment_step_viability",
        "  1,634  11%",
    ]


def test_a_heading_that_is_wider_than_the_names_runs_over_the_figures() -> None:
    table = FigureTable(name="call", heads=("rules",))
    table.add(Text("part_plan:split, 16,384 tokens"))
    table.add(Text("11 implement"), "634")
    file = io.StringIO()
    Console(file=file, width=32).print(table, soft_wrap=True)
    assert [line.rstrip() for line in file.getvalue().splitlines()] == [
        "call         rules",
        "part_plan:split, 16,384 tokens",
        "11 implement   634",
    ]
