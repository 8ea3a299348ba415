"""How `cra index` grows with the repository: one, four and sixteen times a real one.

    python -m benchmarks.growth REPOSITORY --work FOLDER [--rounds 3] [--write]

from the repository's root. REPOSITORY is a checkout of a Python project. What is held constant: every copy has names,
imports and a history of its own, so that files for a copy, symbols, edges and commits for a file, and the depth of
paths are the same in all sizes. Rounds go over the sizes in turn.
"""

import argparse
import itertools
import os
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from testing.parsed_files import parsed_files
from testing.processes import CRA, Peak, Spent, environment, peak, pin, spend

from benchmarks.growth.enlarged import COMMITS, TOUCHED, make_enlarged, read_original
from benchmarks.index.copies import Edits, choose_edits, edited, forget
from benchmarks.index.floor import PROCESSES
from benchmarks.index.index_table import Contents, read_contents
from benchmarks.results import table, write_section
from clean_room_agent.workspace import Workspace

RESULTS = Path(__file__).with_name("RESULTS.md")

SECTION = "Index: growth"
SIZES = (1, 4, 16)
COMMAND = (CRA, "index", "--json")
ROWS = ("cold", "nothing changed", "function added", "hub: function added")


class Size(Struct, kw_only=True):
    """One enlargement and what was measured of it."""

    copies: int
    top: Path
    files: int
    """Those that git tracks."""
    parsed: int
    contents: Contents
    edits: Edits
    spent: dict[str, list[Spent]] = field(default_factory=lambda: defaultdict(list))
    peak: Peak | None = None

    def median(self, row: str) -> float:
        """Seconds."""
        return statistics.median(spent.wall for spent in self.spent[row])

    def work(self, row: str) -> float:
        """Median processor seconds of all processes."""
        return statistics.median(spent.processor for spent in self.spent[row])


def main() -> None:
    """Measure, print, write the section where that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repository", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="a folder for the enlargements, made anew")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--write", action="store_true", help="write the section of RESULTS.md")
    options = parser.parse_args()
    pin(PROCESSES)
    work = options.work.resolve() / "growth"
    env = environment(options.work)
    original = read_original(options.repository)
    sizes = []
    for copies in sorted(options.sizes):
        top = make_enlarged(original, work / f"x{copies}", copies)
        sizes.append(prepare(top, copies, len(original.files) * copies, env))
    for _ in range(options.rounds):
        for size in sizes:
            measure(size, env)
    for size in sizes:
        forget(size.top)
        size.peak = peak(COMMAND, cwd=size.top, env=env)
    body = render(sizes, options.repository.resolve().name, options.rounds)
    print(body)
    if options.write:
        write_section(RESULTS, SECTION, body)


def prepare(top: Path, copies: int, files: int, env: dict[str, str]) -> Size:
    """Indexed once: files are in the cache, modules compiled."""
    spend(COMMAND, cwd=top, env=env)
    return Size(
        copies=copies,
        top=top,
        files=files,
        parsed=len(parsed_files(top)),
        contents=read_contents(Workspace(repo=top).curated),
        edits=choose_edits(top),
    )


def measure(size: Size, env: dict[str, str]) -> None:
    """Every row once."""
    forget(size.top)
    for row in ("cold", "nothing changed"):
        note(size, row, spend(COMMAND, cwd=size.top, env=env))
    for row, edit in (("function added", size.edits.added), ("hub: function added", size.edits.hub)):
        with edited(size.top, edit):
            note(size, row, spend(COMMAND, cwd=size.top, env=env))
        spend(COMMAND, cwd=size.top, env=env)


def note(size: Size, row: str, spent: Spent) -> None:
    """One more figure, which is also shown."""
    size.spent[row].append(spent)
    print(f"x{size.copies:<4} {row:<20} {spent.wall:8.3f} s {spent.processor:8.3f} CPU s", flush=True)


def render(sizes: Sequence[Size], name: str, rounds: int) -> str:
    """The section's text."""
    rows = [
        (
            f"x{size.copies}",
            f"{size.files:,}",
            f"{size.parsed:,}",
            *(f"{size.median('cold'):.2f} s", f"{size.median('cold') / size.parsed * 1000:.2f} ms"),
            *(f"{size.median(row) * 1000:.0f} ms" for row in ROWS[1:]),
            f"{size.peak.total:.0f}" if size.peak else "-",
            f"{size.contents.database_mb:.1f}",
        )
        for size in sizes
    ]
    head = ("size", "files", "parsed", "cold", "cold for a parsed file", *ROWS[1:], "peak MB", "database MB")
    first = sizes[0]
    conditions = (
        f"{name}, once to {sizes[-1].copies} times in one repository; medians of {rounds} rounds in turn; two "
        f"processors. Held constant: every copy has functions, classes, modules and packages of its own names, its "
        f"imports stay within it, and it has {COMMITS + 1} commits of its own, of which {COMMITS} change {TOUCHED} "
        f"files each. The hub is the file that most others import (`{first.edits.hub.path}`, "
        f"{', '.join(str(size.edits.importers) for size in sizes)} importers). Load of the machine at the end: "
        f"{os.getloadavg()[0]:.1f}."
    )
    return "\n\n".join(
        [conditions, table(head, rows), _further(sizes), table(*_per_copy(sizes)), table(*_works(sizes))]
    )


def _further(sizes: Sequence[Size]) -> str:
    """What a further file costs between two sizes, which is free of what every run costs."""
    said = []
    for less, more in itertools.pairwise(sizes):
        files = more.parsed - less.parsed
        cold = (more.median("cold") - less.median("cold")) / files * 1000
        idle = (more.median("nothing changed") - less.median("nothing changed")) / files * 1e6
        edit = (more.median("function added") - less.median("function added")) / files * 1e6
        said.append(
            f"- from x{less.copies} to x{more.copies}, a further parsed file costs {cold:.2f} ms cold, {idle:.0f} us "
            f"when nothing changed, {edit:.0f} us when one file did"
        )
    return "\n".join(said)


def _per_copy(sizes: Sequence[Size]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Shows that the sizes are comparable."""
    kinds: Mapping[str, int] = sizes[0].contents.rows
    rows = [(kind, *(f"{size.contents.rows[kind] / size.copies:,.1f}" for size in sizes)) for kind in kinds]
    return ("rows for one copy", *(f"x{size.copies}" for size in sizes)), rows


def _works(sizes: Sequence[Size]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    rows = [(row, *(f"{size.work(row):.2f}" for size in sizes)) for row in ROWS]
    return ("processor seconds of all processes", *(f"x{size.copies}" for size in sizes)), rows


if __name__ == "__main__":
    main()
