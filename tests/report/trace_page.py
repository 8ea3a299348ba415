"""planning/trace.md: its statements, and its answers written anew from a run made for them."""

import contextlib
import os
import re
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from tests.report.scripted_solve import LINE, solve_sample

PAGE = Path(__file__).parents[2] / "planning" / "trace.md"
FENCE = re.compile(
    r"^```sql\n(?P<statement>.*?)^```\n(?P<answer>\n```text\n.*?^```\n)?", re.DOTALL | re.MULTILINE
)
PATH = "tally/money.py"
SYMBOL = "split_amount"


class Answered(Struct, frozen=True, kw_only=True):
    """One statement of the page with what the record answers."""

    statement: str
    rows: tuple[Mapping[str, object], ...]


def answers_on_page() -> tuple[str, ...]:
    """What the page says that its statements answered, in order; "" where it says nothing."""
    return tuple(match["answer"] or "" for match in FENCE.finditer(PAGE.read_text(encoding="utf-8")))


def ask(record: Path, run: str) -> tuple[Answered, ...]:
    """The page's statements in order, each with its rows, all on one read-only connection."""
    with contextlib.closing(sqlite3.connect(f"file:{record}?mode=ro", uri=True)) as conn:
        conn.row_factory = sqlite3.Row
        found = []
        for match in FENCE.finditer(PAGE.read_text(encoding="utf-8")):
            statement = match["statement"]
            values = {name: value for name, value in parameters(run).items() if f":{name}" in statement}
            rows = tuple(dict(row) for row in conn.execute(statement, values))
            found.append(Answered(statement=statement, rows=rows))
        return tuple(found)


def parameters(run: str) -> dict[str, str]:
    """What the page's `.parameter set` lines give."""
    return {"run": run, "path": PATH, "symbol": SYMBOL, "line": LINE}


def written_anew(page: str, run: str, answers: tuple[Answered, ...]) -> str:
    """`page` with `answers` between its fences, and the run's id where it is given to the shell."""
    left = iter(answers)

    def fill(match: re.Match[str]) -> str:
        rows = next(left).rows
        head = f"```sql\n{match['statement']}```\n"
        return head if match["answer"] is None else f"{head}\n```text\n{_lines(rows)}```\n"

    page = re.sub(r"(\.parameter set :run \"')[^']*", rf"\g<1>{run}", page)
    return FENCE.sub(fill, page)


def _lines(rows: tuple[Mapping[str, object], ...]) -> str:
    """As `sqlite3 -line` prints them, less the white space at line ends."""
    blocks = []
    for row in rows:
        width = max(5, *map(len, row))
        said = "\n".join(f"{name:>{width}} = {'' if value is None else value}" for name, value in row.items())
        blocks.append("".join(f"{line.rstrip()}\n" for line in said.split("\n")))
    return "\n".join(blocks)


def main() -> None:
    """The page holds the answers of a run made now."""
    with tempfile.TemporaryDirectory(prefix="cra-trace-") as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        top, run = solve_sample(Path(folder))
        answers = ask(top / ".clean_room" / "raw.sqlite", run)
    PAGE.write_text(written_anew(PAGE.read_text(encoding="utf-8"), run, answers), encoding="utf-8")


if __name__ == "__main__":
    main()
