"""The recovery table with each row left out, on the oracle's commits with a model that errs.

A row that decided nothing in a run cannot change that run: each row is left out only where it decided, by the record of the
run with all rows, and the others stay as they were.
"""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import get_args

from msgspec.structs import replace

from benchmarks.commits.commit_list import CommitEntry
from benchmarks.commits.solve_commit import Setting
from benchmarks.oracle.page import Row, kept_row
from benchmarks.results import table
from clean_room_agent.db.connection import connect_file
from clean_room_agent.orchestrator.config import Rule

RULES: tuple[str, ...] = get_args(Rule)
WITHOUT = "-without_"
DECIDES = {"replan_last": "replan", "endless": "skip"}
"""What a row decides, where that is not its own name."""
TITLE = "The oracle: the recovery table with each row left out"


def left_out(setting: Setting, rule: str) -> Setting:
    """The setting without that row."""
    rules = tuple(each for each in RULES if each != rule)
    return replace(setting, name=f"{setting.name}{WITHOUT}{rule}", rules=rules)


def decided_in(work: Path, commit: str, setting: str) -> frozenset[str]:
    """The actions of the recovery table in the run that the work folder has of this commit and setting.

    Raises:
        SystemExit: it has none.
    """
    record = work / "solve" / commit / f"{setting}.sqlite"
    if not record.exists():
        raise SystemExit(f"{commit} has no run with {setting} below {work}: run that setting first")
    # For writing: a record of an earlier build is brought to this one's schema.
    with contextlib.closing(connect_file("raw", record)) as conn:
        return frozenset(action for (action,) in conn.execute("SELECT action FROM recovery_decisions"))


def runs_without(
    work: Path, entries: Sequence[CommitEntry], setting: Setting, rules: Sequence[str]
) -> Iterator[tuple[CommitEntry, Setting]]:
    """What has to be run: each row left out, of the commits in whose run it decided."""
    for entry in entries:
        decided = decided_in(work, entry.id, setting.name)
        for rule in rules:
            if DECIDES.get(rule, rule) in decided:
                yield entry, left_out(setting, rule)


def left_out_table(rows: Path, entries: Sequence[CommitEntry], settings: Sequence[str]) -> str:
    """A line for each row of the table: what all commits come to without it, beside what they come to with all rows."""
    head = ("setting", "without", "commits in which it decided", "solved", "calls", "differs in")
    lines = []
    for setting in settings:
        whole = {entry.id: row for entry in entries if (row := kept_row(rows, entry.id, setting))}
        lines.append((setting, "(all rows)", "", _solved(whole.values()), _calls(whole.values()), ""))
        for rule in RULES:
            found = {
                commit: row
                for commit in whole
                if (row := kept_row(rows, commit, f"{setting}{WITHOUT}{rule}"))
            }
            both = {**whole, **found}
            differs = [commit for commit, row in found.items() if row.solved != whole[commit].solved]
            lines.append(
                (
                    setting, rule, str(len(found)), _solved(both.values()), _calls(both.values()),
                    ", ".join(differs) or "nothing",
                )
            )  # fmt: skip
    return table(head, lines)


def _solved(rows: Collection[Row]) -> str:
    return f"{sum(row.solved for row in rows)} of {len(rows)}"


def _calls(rows: Collection[Row]) -> str:
    return f"{sum(row.calls for row in rows):,}"
