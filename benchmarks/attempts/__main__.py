"""What a fresh attempt costs: putting the task's worktree back to a commit, beside making a new one each time.

    python -m benchmarks.attempts --mirror FOLDER [--mirror FOLDER ...] --work FOLDER

from the repository's root. Each folder is a repository that is cloned first. An attempt is a commit that changes
five files; tests leave compiled files and a cache behind, as Python's do.
"""

import argparse
import contextlib
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from benchmarks.results import table, write_section
from clean_room_agent.git.commits import FILE, FileChange, commit_files
from clean_room_agent.git.history import list_tree, read_blob
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.git.worktree import Worktree, add_worktree, remove_worktree, reset_worktree

RESULTS = Path(__file__).with_name("RESULTS.md")

TARGET_MS = 50
CHANGED = 5
LEFT_BEHIND = 200
ROUNDS = 20
FRESH_ROUNDS = 5


class Took(Struct, frozen=True, kw_only=True):
    """Milliseconds."""

    wall: float
    processor: float


class Measured(Struct, frozen=True, kw_only=True):
    """What each round took."""

    name: str
    files: int
    reset: tuple[Took, ...]
    """To the next attempt's commit, after tests of the last one."""
    again: tuple[Took, ...]
    """To the commit that it holds already, after tests."""
    fresh: tuple[Took, ...]
    """A new worktree."""
    removed: tuple[Took, ...]


def main() -> None:
    """Measure, print, write the section."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mirror", type=Path, action="append", required=True, help="cloned, never changed")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--dry-run", action="store_true", help="print, and leave RESULTS.md as it is")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    body = render([measure(mirror, options.work.resolve()) for mirror in options.mirror])
    print(body)
    if not options.dry_run:
        write_section(RESULTS, "attempts", body)


def measure(mirror: Path, work: Path) -> Measured:
    """All of one repository."""
    top = work / mirror.name
    if not top.exists():
        subprocess.run(("git", "clone", "-q", "--no-hardlinks", str(mirror), str(top)), check=True)
    repo = open_repository(top)
    paths = [path for path in list_tree(repo, repo.head) if path.endswith(".py")]
    attempts = [attempt(repo, paths[number::97][:CHANGED], number) for number in range(2)]
    fresh: list[Took] = []
    removed: list[Took] = []
    for number in range(FRESH_ROUNDS):
        with timed(fresh):
            tree = add_worktree(repo, repo.head, work / f"fresh-{number}", f"b{number}")
        with timed(removed):
            remove_worktree(tree)
    resets: list[Took] = []
    again: list[Took] = []
    tree = add_worktree(repo, repo.head, work / "tree", "bench")
    try:
        for number in range(ROUNDS):
            reset(tree, attempts[number % 2], paths, resets)
        for _ in range(ROUNDS):
            reset(tree, attempts[-1], paths, again)
    finally:
        remove_worktree(tree)
    return Measured(
        name=mirror.name,
        files=len(list_tree(repo, repo.head)),
        reset=tuple(resets),
        again=tuple(again),
        fresh=tuple(fresh),
        removed=tuple(removed),
    )


def attempt(repo: Repository, paths: list[str], number: int) -> str:
    """A commit on HEAD that changes `paths`."""
    changes = {
        path: FileChange(data=(read_blob(repo, repo.head, path) or b"") + b"# %d\n" % number, mode=FILE)
        for path in paths
    }
    return commit_files(repo, repo.head, changes, f"Attempt {number}", None)


def reset(tree: Worktree, commit: str, paths: list[str], took: list[Took]) -> None:
    """The worktree holds `commit` again, after tests left something behind; `took` has one more."""
    for path in paths[:LEFT_BEHIND]:
        cache = (tree.path / path).parent / "__pycache__"
        cache.mkdir(exist_ok=True)
        (cache / f"{Path(path).stem}.cpython-311.pyc").write_bytes(b"\0" * 4096)
    (tree.path / "results.txt").write_text("ok\n")
    with timed(took):
        reset_worktree(tree, commit)


@contextlib.contextmanager
def timed(took: list[Took]) -> Iterator[None]:
    """`took` has one more: what the body took."""
    began, spent = time.monotonic(), processor_seconds()
    yield
    took.append(Took(wall=(time.monotonic() - began) * 1000, processor=(processor_seconds() - spent) * 1000))


def processor_seconds() -> float:
    """What this process and those it has waited for used, which a busy machine stretches less than the clock."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def render(measured: list[Measured]) -> str:
    """The section."""
    rows = [
        (
            one.name,
            f"{one.files:,}",
            spread(one.reset),
            spread(one.again),
            spread(one.fresh),
            spread(one.removed),
        )
        for one in measured
    ]
    head = ("repository", "files", "reset", "reset to the same commit", "new worktree", "removed")
    load = f"Load of the machine at the end, over {os.cpu_count()} processors: {os.getloadavg()[0]:.1f}."
    said = (
        f"Milliseconds, median (least; processor time), {ROUNDS} rounds of a reset and {FRESH_ROUNDS} of a new worktree; "
        f"target: a reset within {TARGET_MS}. {CHANGED} files differ, {LEFT_BEHIND} compiled files were left behind."
    )
    return f"{said}\n\n{table(head, rows)}\n\n{load}"


def spread(took: tuple[Took, ...]) -> str:
    """Median, least, and the processor's median."""
    wall = [each.wall for each in took]
    return f"{statistics.median(wall):.0f} ({min(wall):.0f}; {statistics.median(each.processor for each in took):.0f})"


if __name__ == "__main__":
    main()
