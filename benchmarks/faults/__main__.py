"""What goes wrong on purpose, how often, and what came of it: the scoreboard of reliability.

    python -m benchmarks.faults --write            # every part, as often as the targets ask
    python -m benchmarks.faults --effort short     # every part, a few times
    python -m benchmarks.faults kills cuts         # some parts

from the repository's root. Every part is a module of `testing/faults` that says what it does to what. The exit code is 1
where a target is missed; `--write` keeps what parts that did not run wrote before.
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

from benchmarks.faults.scoreboard import read_board, render, write_board

PARTS = (
    "states",
    "escapes",
    "kills",
    "cuts",
    "full_disk",
    "applies",
    "fuzz",
    "fuzz_index",
    "tampering",
    "leftovers",
    "writers",
    "races",
    "removed",
    "damage",
)
"""Modules of `testing/faults`, each with `run(effort, work)`, in the scoreboard's order."""


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
    print(render(measured))
    if options.write:
        write_board(read_board() | measured, order=PARTS)
    return int(any(not figure.met for figures in measured.values() for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
