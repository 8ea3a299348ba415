"""The floor: two processes read the files that `cra index` parses, parse them, and do nothing with the trees.

    python -m benchmarks.index.floor REPOSITORY [COMMIT]

of all its files, or of those that are not as they were in COMMIT, prints the seconds between the start of Python, imports included, and its end: what remains is work on files.
"""

import multiprocessing
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from testing.parsed_files import parsed_files
from tree_sitter import Parser

from clean_room_agent.syntax import grammar_of, language

PROCESSES = 2
BATCH = 8
"""Files to a task."""


def changed_files(top: Path, older: str) -> list[str]:
    """Those of the parsed files that differ from what they were in the commit `older`, or are new."""
    listed = subprocess.run(
        ("git", "diff", "--name-only", "-z", older), cwd=top, capture_output=True, check=True, text=True
    ).stdout.split("\0")
    return sorted(set(listed).intersection(parsed_files(top)))


def read_and_parse(paths: Iterable[str]) -> None:
    """Each file was read and parsed, without any of the bounds that a program must set."""
    parsers: dict[str, Parser] = {}
    for path in paths:
        grammar = grammar_of(path) or ""
        if grammar not in parsers:
            parsers[grammar] = Parser(language(grammar))
        with open(path, "rb") as file:  # noqa: PTH123 - quicker than Path.open, and this is the floor
            parsers[grammar].parse(file.read())


def main() -> None:
    began = time.perf_counter()
    top = Path(sys.argv[1])
    files = changed_files(top, sys.argv[2]) if len(sys.argv) > 2 else parsed_files(top)
    paths = [f"{top}/{path}" for path in files]
    batches = [paths[start : start + BATCH] for start in range(0, len(paths), BATCH)]
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        for _ in pool.imap_unordered(read_and_parse, batches):
            pass
    print(time.perf_counter() - began)


if __name__ == "__main__":
    main()
