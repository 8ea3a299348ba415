"""The figures of the scoreboard, and their place in RESULTS.md."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from testing.faults.figures import Figure

from benchmarks.results import table, write_section

RESULTS = Path(__file__).with_name("RESULTS.md")

TITLE = "Faults"
HEAD = ("part", "figure", "tried", "found", "target", "met")
ROW = re.compile(r"^\| (\w+) \| (.+) \| ([\d,]+) \| ([\d,]+) \| (.+) \| (yes|no) \|$", re.MULTILINE)


def render(board: Mapping[str, Iterable[Figure]]) -> str:
    """The board as a Markdown table, its parts in the order of the mapping."""
    rows = [
        (part, one.name, f"{one.tried:,}", f"{one.found:,}", one.target, "yes" if one.met else "no")
        for part, figures in board.items()
        for one in figures
    ]
    return table(HEAD, rows)


def read_board(path: Path = RESULTS) -> dict[str, tuple[Figure, ...]]:
    """The figures that stand in the page, by part; empty where none do."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    section = text.partition(f"## {TITLE}\n")[2].partition("\n## ")[0]
    board: dict[str, tuple[Figure, ...]] = {}
    for part, name, tried, found, target, met in ROW.findall(section):
        figure = Figure(
            name=name, tried=_number(tried), found=_number(found), target=target, met=met == "yes"
        )
        board[part] = (*board.get(part, ()), figure)
    return board


def write_board(board: Mapping[str, Iterable[Figure]], *, order: Sequence[str], path: Path = RESULTS) -> None:
    """The page's section holds the board, its parts in `order`."""
    text = "`python -m benchmarks.faults --write`; `found` counts what must not happen, unless the figure says otherwise."
    body = render({part: board[part] for part in order if part in board})
    write_section(path, TITLE, f"{text}\n\n{body}")


def _number(text: str) -> int:
    return int(text.replace(",", ""))
