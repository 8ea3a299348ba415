"""The figures of `benchmarks.index` as Markdown."""

import contextlib
import math
import os
import sqlite3
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from testing.processes import Peak, Spent

from benchmarks.index.copies import Edits
from benchmarks.results import table

FLOOR = "floor"
PULL_FLOOR = "floor of the pull"
RATIO_TARGETS = {
    "cold": (FLOOR, {"sympy": 4.0, "sqlalchemy": 5.0, "core": 4.5}),
    "commits pulled": (PULL_FLOOR, {"sympy": 3.0, "sqlalchemy": 4.5, "core": 3.0}),
}
"""How many times its floor a row may take, by repository."""
TARGETS_MS = {
    "nothing changed": 100,
    "body changed": 250,
    "function added": 250,
    "hub: function added": 250,
}
MEMORY_TARGET_MB = 500
UNCHANGED_RUNS = 5
"""In a round where nothing changed: the first follows a full build, while the system still writes what that left."""
KINDS = ("symbols", "docstrings", "inline_comments", "dependencies", "symbol_references", "commits", "file_commits",
         "co_changes")  # fmt: skip
"""Tables whose rows are counted."""


class Contents(Struct, frozen=True, kw_only=True):
    """What a fresh index holds."""

    database_mb: float
    rows: Mapping[str, int]
    """By table."""


class Figures(Struct, frozen=True, kw_only=True):
    """Everything measured of one repository."""

    name: str
    spent: Mapping[str, Sequence[Spent]]
    """By row, a figure each round."""
    peaks: Mapping[str, Peak]
    files: int
    """Those that are parsed."""
    source_mb: float
    commits: int
    """That were pulled."""
    changed: tuple[int, float]
    """Parsed files that they left new or changed, and their MB."""
    edits: Edits
    contents: Contents
    tags: int
    """Lines that universal-ctags wrote; 0 where it is not installed."""

    def wall(self, row: str) -> float:
        """Median seconds."""
        return statistics.median(spent.wall for spent in self.spent[row])


def read_contents(database: Path) -> Contents:
    """How large the database is and what stands in it."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as conn:
        rows = {kind: conn.execute(f"SELECT count(*) FROM {kind}").fetchone()[0] for kind in KINDS}
    return Contents(database_mb=database.stat().st_size / 1e6, rows=rows)


def render(figures: Sequence[Figures], *, rounds: int, versions: str) -> str:
    """The section's text."""
    rows = list(dict.fromkeys(row for one in figures for row in one.spent))
    head = ("whole process, wall clock", *(one.name for one in figures), "target")
    walls = [
        (row, *(_wall_cell(one, row) for one in figures), _target(row, [one.name for one in figures]))
        for row in rows
    ]
    works = [(row, *(_work_cell(one, row) for one in figures)) for row in rows]
    conditions = (
        f"Medians (least) of {rounds} rounds in turn ({UNCHANGED_RUNS} runs a round where nothing changed); two "
        "processors; `x` is times the floor, of the pull its own. A figure beyond its "
        f"target is bold.{f' Peers: {versions}.' if versions else ''} Load of the machine at the end: "
        f"{os.getloadavg()[0]:.1f}."
    )
    explained = (
        "The floor is two processes that read and parse the files which `cra index` parses, without the start of "
        "Python; that of the pull is the same over the files that the commits leave new or changed. aider's map is timed without its imports, over the same files and without a model; cold is without "
        "its cache of tags. `hub: name changed` leaves the users of the name as they are."
    )
    parts = [
        conditions,
        table(head, walls),
        explained,
        table(("processor seconds of all processes", *(one.name for one in figures)), works),
        table(("memory and size", *(one.name for one in figures), "target"), _sizes(figures)),
        "\n".join(_described(one) for one in figures),
        "\n".join(_against_ctags(one) for one in figures if one.tags),
    ]
    return "\n\n".join(part for part in parts if part)


def _wall_cell(one: Figures, row: str) -> str:
    if row not in one.spent:
        return "-"
    median, least = one.wall(row), min(spent.wall for spent in one.spent[row])
    if row in TARGETS_MS or row == PULL_FLOOR or row.startswith("hub"):
        said = f"{median * 1000:.0f} ms ({least * 1000:.0f})"
        missed = median * 1000 > TARGETS_MS.get(row, median * 1000)
    else:
        floor, targets = RATIO_TARGETS.get(row, (FLOOR, {}))
        ratio = median / one.wall(floor)
        said = f"{median:.2f} s ({least:.2f})" + (f", {ratio:.1f}x" if row != FLOOR else "")
        missed = round(ratio, 1) > targets.get(one.name, math.inf)
    return f"**{said}**" if missed else said


def _target(row: str, names: Sequence[str]) -> str:
    if row in RATIO_TARGETS:
        targets = RATIO_TARGETS[row][1]
        return f"<= {' / '.join(f'{targets[name]:g}x' if name in targets else '-' for name in names)}"
    return f"<= {TARGETS_MS[row]} ms" if row in TARGETS_MS else ""


def _work_cell(one: Figures, row: str) -> str:
    if row not in one.spent:
        return "-"
    return f"{statistics.median(spent.processor for spent in one.spent[row]):.2f}"


def _sizes(figures: Sequence[Figures]) -> list[tuple[str, ...]]:
    rows = [
        (f"peak memory of all processes, {what}, MB", *(_peak_cell(one.peaks[what]) for one in figures),
         f"<= {MEMORY_TARGET_MB}")
        for what in figures[0].peaks
    ]  # fmt: skip
    more: tuple[tuple[str, Callable[[Figures], str]], ...] = (
        ("database, MB", lambda one: f"{one.contents.database_mb:.1f}"),
        ("parsed source, MB", lambda one: f"{one.source_mb:.1f}"),
        ("parsed files", lambda one: f"{one.files:,}"),
    )
    rows.extend((what, *(value(one) for one in figures), "") for what, value in more)
    rows.extend(
        (f"rows of {kind}", *(f"{one.contents.rows[kind]:,}" for one in figures), "") for kind in KINDS
    )
    return rows


def _peak_cell(found: Peak) -> str:
    said = f"{found.total:.0f} ({found.files:.0f} of it mapped files)"
    return f"**{said}**" if found.total > MEMORY_TARGET_MB else said


def _described(one: Figures) -> str:
    edits = one.edits
    return (
        f"- {one.name}: changed file `{edits.body.path}` ({len(edits.body.before):,} bytes); hub `{edits.hub.path}` "
        f"({edits.importers:,} importers); name changed `{edits.renamed_name}` of `{edits.renamed.path}` (stands in "
        f"{edits.mentions:,} files); {one.commits} commits pulled, which leave {one.changed[0]:,} parsed files "
        f"({one.changed[1]:.1f} MB) new or changed."
    )


def _against_ctags(one: Figures) -> str:
    rows = one.contents.rows
    ctags, cold = one.wall("universal-ctags"), one.wall("cold")
    return (
        f"- {one.name}: what the difference to ctags buys. It lists {one.tags:,} tags in {ctags:.2f} s. The "
        f"{cold - ctags:.2f} s more give {rows['symbols']:,} symbols with their places in one another, "
        f"{rows['docstrings']:,} docstrings and {rows['inline_comments']:,} comments by symbol, "
        f"{rows['dependencies']:,} resolved imports and {rows['symbol_references']:,} references between symbols, "
        f"{rows['commits']:,} commits with {rows['co_changes']:,} pairs of files that change together, and the "
        f"postings that the search needs; and nothing changed is then {one.wall('nothing changed') * 1000:.0f} ms, "
        f"where ctags begins anew."
    )
