"""Streams every commit of a history with what it changed, holding only one commit in memory. Read-only."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from clean_room_agent.git.command import git, one_line, require_hex, stream_git
from clean_room_agent.git.log import seconds_of

# Every field is non-empty, so that two NULs in a row stand between commits and nowhere else.
FORMAT = "%x00%H%x00p%P%x00t%ct%x00a%an <%ae>%x00m%B"
FRUGAL = ("-c", "core.packedGitWindowSize=1m", "-c", "core.packedGitLimit=64m")
RAW = re.compile(r":(?P<before>\d+) (?P<after>\d+) \w+ \w+ (?P<status>[A-Z])\d*")


class FileChange(Struct, frozen=True, kw_only=True):
    """One path of a commit; a rename is a deletion and an addition."""

    path: str
    """Bytes that are not UTF-8 become surrogates."""
    status: str
    """A, M, D or T (its type changed)."""
    is_file: bool
    """Whether it is a regular file wherever it exists, before and after."""
    lines: int | None
    """Lines added plus lines deleted; None if it is binary."""


class CommitChange(Struct, frozen=True, kw_only=True):
    """One commit. Merges and the first commit have no files."""

    hash: str
    parents: tuple[str, ...]
    timestamp: int
    """The committer's, in seconds since 1970 UTC."""
    author: str
    """`Name <address>`."""
    message: str
    files: tuple[FileChange, ...]


def stream_changes(git_dir: Path, head: str) -> Iterator[CommitChange]:
    """The commits that `head` reaches, parents before children.

    Raises:
        GitError: git failed; it is raised after the last commit that could be read.
    """
    pieces = stream_git(
        *FRUGAL,
        *("log", "-z", "--raw", "--numstat", "--no-renames", "--no-abbrev", "--reverse", "--topo-order"),
        *(
            "--no-textconv",
            "--no-ext-diff",
            f"--format={FORMAT}",
            "--end-of-options",
            require_hex(head),
            "--",
        ),
        cwd=git_dir,
        separator=b"\0\0",
        pins={"GIT_DIR": str(git_dir)},
    )
    for piece in pieces:
        record = os.fsdecode(piece).strip("\0")
        if record:
            yield _entry(record)


def resolve_commit(git_dir: Path, revision: str) -> str | None:
    """The full id of the commit that `revision` names; None if it names none."""
    asked = git(
        "rev-parse", "--verify", "-q", "--end-of-options", f"{revision}^{{commit}}",
        cwd=git_dir, pins={"GIT_DIR": str(git_dir)}, ok=(0, 1, 128),
    )  # fmt: skip
    return one_line(asked) or None


def _entry(record: str) -> CommitChange:
    name, parents, when, author, message, *rest = record.split("\0")
    above = tuple(parents[1:].split())
    return CommitChange(
        hash=name,
        parents=above,
        timestamp=seconds_of(when[1:]),
        author=author[1:],
        message=message[1:].strip("\n"),
        files=_files(rest) if len(above) == 1 else (),
    )


def _files(rest: list[str]) -> tuple[FileChange, ...]:
    """The files in `rest`, which has the raw entries, two pieces each, then the counts, one piece each, in the same
    order of paths.
    """
    pieces = [piece.lstrip("\n") for piece in rest]
    first = next((at for at, piece in enumerate(pieces[::2]) if not piece.startswith(":")), len(pieces) // 2)
    heads, counts = pieces[: 2 * first], pieces[2 * first :]
    lines: dict[str, int | None] = {}
    for entry in counts:
        added, deleted, path = entry.split("\t", 2)
        lines[path] = None if "-" in {added, deleted} else int(added) + int(deleted)
    found = []
    for head, path in zip(heads[0::2], heads[1::2], strict=True):
        match = RAW.match(head)
        if match is not None:
            modes = {match["before"], match["after"]} - {"000000"}
            found.append(
                FileChange(
                    path=path,
                    status=match["status"],
                    is_file=all(mode.startswith("100") for mode in modes),
                    lines=lines.get(path),
                )
            )
    return tuple(found)
