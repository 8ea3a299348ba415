"""Checkouts as they stood before a task: one commit, and no history but what leads to it."""

import subprocess
from pathlib import Path

from benchmarks.commits.checkouts import BenchmarkError, folder_name, git, mirror_path
from clean_room_agent.errors import CraError
from clean_room_agent.indexer.build import index_repository
from clean_room_agent.indexer.index_config import IndexConfig
from clean_room_agent.syntax import grammar_of

JOBS = 2
SHORT = 10
"""Digits of a commit that name its folder."""
WHOLE = "whole"
"""Beside `.git`'s own files: the checkout was finished."""


def snapshot(work: Path, mirror: str, repository: str, commit: str) -> Path:
    """A checkout of the mirrored repository's `commit` below `work`, with its index up to date."""
    top = work / "snapshots" / folder_name(repository) / commit[:SHORT]
    return indexed(checkout(mirror_path(mirror, repository), commit, top))


def checkout(source: Path, commit: str, top: Path) -> Path:
    """`top`, with the files of `commit` and HEAD detached there; made on first use.

    It has no reference but HEAD, and takes its objects from `source`: what came after the commit cannot be asked for.

    Raises:
        BenchmarkError: `source` does not have the commit.
    """
    if (top / ".git" / WHOLE).exists():
        return top
    top.mkdir(parents=True, exist_ok=True)
    git(top, "init", "--quiet")
    objects = git(source, "rev-parse", "--path-format=absolute", "--git-path", "objects")
    (top / ".git" / "objects" / "info" / "alternates").write_text(f"{objects}\n", encoding="utf-8")
    git(top, "update-ref", "--no-deref", "HEAD", commit)
    git(top, "read-tree", commit)
    try:
        git(top, "checkout-index", "--all", "--force", "--quiet", "--index")
    except BenchmarkError:
        # The mirror lacks contents (of large files, as a rule). What it has was written.
        _expect_gaps(top)
    (top / ".git" / WHOLE).touch()
    return top


def indexed(top: Path) -> Path:
    """The checkout, its index up to date."""
    try:
        _index(top)
    except CraError:
        # The files are there, so it is a former commit of which the mirror lacks contents.
        _expect_gaps(top)
        _index(top)
    return top


def source_files(top: Path) -> tuple[str, ...]:
    """The files that are ranked: tracked, there, of a language that is parsed; tests among them; sorted."""
    listed = filter(None, git(top, "ls-files", "-z", "--cached").split("\0"))
    return tuple(path for path in sorted(listed) if grammar_of(path) and (top / path).is_file())


def lacking(top: Path) -> int:
    """How many of the commit's source files the mirror had no contents for."""
    listed = filter(None, git(top, "ls-files", "-z", "--cached").split("\0"))
    return sum(
        bool(grammar_of(path)) and not (top / path).is_symlink() and not (top / path).exists()
        for path in listed
    )


def _index(top: Path) -> None:
    index_repository(
        top, config=IndexConfig(), jobs=JOBS, continue_on_error=True, progress=lambda _done, _all: None
    )


def _expect_gaps(top: Path) -> None:
    """Git knows the checkout as one that may lack contents, and has nobody to ask for them."""
    for key, value in (("promisor", "true"), ("partialclonefilter", "blob:none"), ("url", "nowhere.invalid")):
        subprocess.run(("git", "config", f"remote.origin.{key}", value), cwd=top, check=True)
