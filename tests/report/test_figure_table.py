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
