"""What goes wrong on purpose, how often, and what came of it: the scoreboard of reliability.

    python -m benchmarks.faults --write            # every part, as often as the targets ask
    python -m benchmarks.faults --effort short     # every part, a few times
    python -m benchmarks.faults kills cuts         # some parts

from the repository's root. Every part is a module of `testing/faults` that says what it does to what. The exit code is 1
where a target is missed; `--write` replaces the sections of the parts that ran.
"""

import argparse
import importlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, cast
from unittest.mock import patch

from testing.faults.figures import Effort, Figure
from testing.foreground import restore_signals

from benchmarks.results import table, write_section

PARTS = (
    "states",
    "escapes",
    "kills",
    "index_kills",
    "cuts",
    "full_disk",
    "applies",
    "tampering",
)
"""Modules of `testing/faults`, each with `run(effort, work)`."""
RESULTS = Path(__file__).with_name("RESULTS.md")
HEAD = ("figure", "tried", "found", "target", "met")
EXPLAINED = "`found` counts what must not happen, unless the figure says otherwise."


class Part(Protocol):
    """One kind of fault."""

    run: Callable[[Effort, Path], tuple[Figure, ...]]


def main() -> int:
    """The scoreboard is printed and, on demand, written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--effort", choices=("short", "full"), default="full")
    parser.add_argument("--work", type=Path, help="a folder for what is made; default: a temporary one")
    parser.add_argument("--write", action="store_true", help="into RESULTS.md")
    options = parser.parse_args()
    restore_signals()
    measured: dict[str, tuple[Figure, ...]] = {}
    with (
        tempfile.TemporaryDirectory() as temporary,
        patch.dict(os.environ, XDG_STATE_HOME=f"{temporary}/state"),  # folders made here are noted there
    ):
        work = options.work or Path(temporary)
        for name in options.parts or PARTS:
            started = time.monotonic()
            folder = work / name
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                parser.error(f"{folder} holds what an earlier run made: delete it, or name another --work")
            part = cast("Part", importlib.import_module(f"testing.faults.{name}"))
            measured[name] = part.run(options.effort, folder)
            print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr)
    for name, figures in measured.items():
        text = rendered(figures)
        print(f"{name}\n\n{text}\n")
        if options.write:
            write_section(RESULTS, name, f"{EXPLAINED}\n\n{text}")
    return int(any(not figure.met for figures in measured.values() for figure in figures))


def rendered(figures: tuple[Figure, ...]) -> str:
    """The figures as a table."""
    return table(
        HEAD,
        [
            (one.name, f"{one.tried:,}", f"{one.found:,}", one.target, "yes" if one.met else "no")
            for one in figures
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
