"""`cra index` on a large repository of oddities: what it takes, what it says, and what it passes over in silence.

    python -m benchmarks.odd_index --work FOLDER [--files 30000] [--each] [--write]

from the repository's root. The repository is made in FOLDER, anew each time. With `--each`, every odd file is also
indexed in a repository of its own, and the slowest and the largest are named.
"""

import argparse
import contextlib
import json
import shutil
import sqlite3
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from testing.odd_repository import BIG, NAMES, Fate, OddSize, make_odd_repository, odd_contents
from testing.processes import CRA, Peak, Spent, environment, peak, spend
from testing.repositories import make_repository

from benchmarks.results import table, write_section
from clean_room_agent.workspace import FOLDER, Workspace

RESULTS = Path(__file__).with_name("RESULTS.md")

SECTION = "Index: an odd repository"
MEMORY_TARGET_MB = 600
COMMAND = (CRA, "index", "--json", "--continue-on-error")
NAMED = 8


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of the files."""

    indexed: frozenset[str]
    named: Mapping[str, str]
    """Path -> message."""

    def silent(self, fates: Iterable[str]) -> list[str]:
        """Files that are neither, sorted."""
        return sorted(set(fates) - self.indexed - set(self.named))


def main() -> None:
    """Make the repository, index it, print, write the section where that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--files", type=int, default=BIG.usual_files, help="usual files among the odd ones")
    parser.add_argument("--each", action="store_true", help="index every odd file alone, too")
    parser.add_argument("--write", action="store_true", help="write the section of RESULTS.md")
    options = parser.parse_args()
    work = options.work.resolve()
    shutil.rmtree(work / "odd", ignore_errors=True)
    size = replace(BIG, usual_files=options.files)
    top = work / "odd" / "repository"
    began = time.perf_counter()
    fates = make_odd_repository(top, size)
    print(f"made {len(fates):,} files in {time.perf_counter() - began:.1f} s", flush=True)
    body = measure(top, environment(work), fates)
    print(body)
    if options.each:
        print(alone(work / "odd" / "each", environment(work), size))
    if options.write:
        write_section(RESULTS, SECTION, body)


def measure(top: Path, env: dict[str, str], fates: Mapping[str, Fate]) -> str:
    """The section's text."""
    spent = {"cold": spend(COMMAND, cwd=top, env=env)}
    outcome = read_outcome(top, spent["cold"])
    print(f"cold {spent['cold'].wall:.1f} s", flush=True)
    spent["nothing changed"] = spend(COMMAND, cwd=top, env=env, may_fail=True)
    (top / "usual" / "p0" / "m0.py").write_text("class Part0:\n    pass\n", encoding="utf-8")
    spent["one file changed"] = spend(COMMAND, cwd=top, env=env, may_fail=True)
    spent["all anew (`--full`)"] = spend((*COMMAND, "--full"), cwd=top, env=env, may_fail=True)
    shutil.rmtree(top / FOLDER)
    highest = peak(COMMAND, cwd=top, env=env)
    rows = [
        (what, f"{one.wall:.2f}", f"{one.processor:.2f}", one.fault.partition("\n")[0])
        for what, one in spent.items()
    ]
    silent = outcome.silent(fates)
    kinds = sorted({fates[path] for path in silent})
    measured = (
        f"{len(fates):,} regular files, one of {BIG.large_bytes / 1e6:.0f} MB, lines of {BIG.line_bytes / 1e6:.0f} MB, "
        f"{BIG.functions:,} functions in a file, {BIG.brackets:,} brackets in one another; links in circles, names "
        f"with line breaks, torn encodings, commits of the year 31,690,708 (`testing/odd_repository.py`)."
    )
    counted = (
        f"Peak memory of all processes: {highest.total:.0f} MB (target {MEMORY_TARGET_MB}). Indexed "
        f"{len(outcome.indexed):,}, named {len(outcome.named)}, left out without a word {len(silent)}."
    )
    said = [measured, table(("run", "s", "processor s", "fault"), rows), counted]
    said.extend(f"- named: `{json.dumps(path)[1:-1]}` {why}" for path, why in sorted(outcome.named.items()))
    said.extend(
        f"- without a word ({kind}): {', '.join(json.dumps(path) for path in silent if fates[path] == kind)}"
        for kind in kinds
    )
    return "\n\n".join(said[:3]) + "\n\n" + "\n".join(said[3:])


def read_outcome(top: Path, spent: Spent) -> Outcome:
    """From the index, and from what the command said."""
    said = json.loads(spent.said)
    database = f"file:{Workspace(repo=top).curated}?mode=ro"
    with contextlib.closing(sqlite3.connect(database, uri=True)) as conn:
        indexed = frozenset(row[0] for row in conn.execute("SELECT path FROM files ORDER BY path"))
    return Outcome(
        indexed=indexed, named={str(path): str(why) for path, why in (*said["failures"], *said["left_out"])}
    )


def alone(work: Path, env: dict[str, str], size: OddSize) -> str:
    """The odd files that take longest, and most memory, each in a repository of its own."""
    contents = {name: content for name, (content, _) in odd_contents(size).items()}
    contents |= dict.fromkeys(NAMES, b"x = 1\n")
    taken: list[tuple[str, Spent, Peak]] = []
    for number, (name, content) in enumerate(contents.items()):
        top = make_repository(work / str(number), {name: content})
        spent = spend(COMMAND, cwd=top, env=env)
        shutil.rmtree(top / FOLDER)
        taken.append((name, spent, peak(COMMAND, cwd=top, env=env)))
    slow = sorted(taken, key=lambda one: -one[1].processor)[:NAMED]
    large = sorted(taken, key=lambda one: -one[2].total)[:NAMED]
    rows = [
        (json.dumps(name), f"{spent.processor:.2f}", f"{highest.total:.0f}")
        for name, spent, highest in dict.fromkeys((*slow, *large))
    ]
    return "Alone:\n\n" + table(("file", "processor s", "peak MB"), rows)


if __name__ == "__main__":
    main()
