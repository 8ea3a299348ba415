"""What the recovery table does about models, servers and tasks that go wrong, and what each of its rows earns.

    python -m benchmarks.recovery [--jobs 2] [--part zoo|samples|scaffolds] [--only TEXT] [--write]

Each pathology of the zoo (`zoo.py`) is run once with all rows, and once without each row that can be switched off. A
call is wasted when it comes after the second wrong answer to an edit prompt in a run that was not solved. The part
`samples` sets candidates from one prompt beside attempts in turn (`samples.py`), the part `scaffolds` files that begin with
their declarations beside such that are written at once (`scaffolds.py`).
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import get_args
from unittest.mock import patch

from msgspec import Struct

from benchmarks.recovery import samples, scaffolds
from benchmarks.recovery.zoo import ZOO, live_through
from benchmarks.results import table, write_section
from clean_room_agent.orchestrator.config import Rule

RESULTS = Path(__file__).with_name("RESULTS.md")

TITLE = "Recovery: pathologies, and the table with each row left out"
RULES: tuple[str, ...] = get_args(Rule)
ALL = "(all rows)"
PARTS = {"samples": samples, "scaffolds": scaffolds}


class Row(Struct, frozen=True, kw_only=True):
    """How a pathology ended under a set of rows."""

    name: str
    left_out: str
    """The row that was switched off; `ALL` for none."""
    ended: str
    due: str
    """How it was due to end."""
    actions: tuple[str, ...]
    attempts: int
    calls: int
    wasted: int
    reason: str


def measure(number: int, left_out: str) -> Row:
    """The pathology of that number in the zoo, without the row."""
    sick = ZOO[number]
    rules = None if left_out == ALL else tuple(rule for rule in RULES if rule != left_out)
    with (
        tempfile.TemporaryDirectory(prefix="cra-zoo-") as folder,
        patch.dict(os.environ, XDG_STATE_HOME=f"{folder}/state"),
    ):
        lived = live_through(sick, Path(folder), rules=rules)
    recorded = lived.told.recorded
    status, reason = recorded.ending
    return Row(
        name=sick.name,
        left_out=left_out,
        ended=status,
        due=sick.ends,
        actions=tuple(recorded.actions),
        attempts=len(recorded.attempts),
        calls=len(recorded.calls),
        wasted=lived.wasted,
        reason=reason,
    )


def zoo_table(rows: Sequence[Row]) -> str:
    """How each pathology ends with all rows."""
    head = ("pathology", "ends", "as due", "attempts", "calls", "wasted", "what was decided")
    cells = [
        (
            row.name,
            row.ended.replace("_", " "),
            "yes" if row.ended == row.due else f"**no: {row.due}**",
            row.attempts,
            row.calls,
            row.wasted,
            ", ".join(row.actions) or "nothing",
        )
        for row in rows
    ]
    return table(head, cells)


def left_out_table(rows: Mapping[str, Sequence[Row]]) -> str:
    """What the zoo comes to without each row, beside what it comes to with all."""
    head = ("without", "complete", "ended as due", "calls", "wasted", "differs in")
    whole = {row.name: row for row in rows[ALL]}
    cells = []
    for left_out, found in rows.items():
        other = [row.name for row in found if (row.ended, row.calls) != _end(whole[row.name])]
        cells.append(
            (
                left_out,
                sum(row.ended == "complete" for row in found),
                sum(row.ended == row.due for row in found),
                sum(row.calls for row in found),
                sum(row.wasted for row in found),
                "; ".join(other) or "nothing",
            )
        )
    return table(head, cells)


def _end(row: Row) -> tuple[str, int]:
    return row.ended, row.calls


def page(rows: Mapping[str, Sequence[Row]]) -> str:
    """The section."""
    idle = [
        name
        for name, found in rows.items()
        if name != ALL and [_end(row) for row in found] == [_end(row) for row in rows[ALL]]
    ]
    earned = (
        f"Without any of these rows the zoo ends the same, with the same calls: {', '.join(idle)}."
        if idle
        else "Each row changes how something ends, or at what cost."
    )
    return "\n\n".join(
        (
            "A call is wasted when it comes after the second wrong answer to an edit prompt in a run that was not solved.",
            zoo_table(rows[ALL]),
            "The same without each row of the table:",
            left_out_table(rows),
            earned,
        )
    )


def main() -> int:
    """The exit code: 1 where a pathology does not end as is due."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--part", choices=("zoo", *PARTS), help="only this; all by default")
    parser.add_argument("--only", default="", help="only pathologies in whose name this stands")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    arguments = parser.parse_args()
    with ProcessPoolExecutor(max_workers=arguments.jobs) as pool:
        for name, part in PARTS.items():
            if arguments.part in {None, name}:
                text = part.measure_all(pool)
                print(text)
                if arguments.write:
                    write_section(RESULTS, part.TITLE, text)
        if arguments.part in PARTS:
            return 0
        rows = measure_zoo(pool, arguments.only)
    text = page(rows)
    print(text)
    if arguments.write:
        write_section(RESULTS, TITLE, text)
    return int(any(row.ended != row.due for row in rows[ALL]))


def measure_zoo(pool: Executor, only: str) -> Mapping[str, Sequence[Row]]:
    """The pathologies in whose name `only` stands, with all rows and without each."""
    chosen = [number for number, sick in enumerate(ZOO) if only in sick.name]
    waiting = {
        left_out: [pool.submit(measure, number, left_out) for number in chosen] for left_out in (ALL, *RULES)
    }
    return {left_out: [each.result() for each in runs] for left_out, runs in waiting.items()}


if __name__ == "__main__":
    sys.exit(main())
