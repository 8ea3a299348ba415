"""Reads the log. Read-only: for the index fast, its whole output split by built-in functions; and one commit after another,
holding only that in memory.
"""

import os
import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from clean_room_agent.errors import GitError
from clean_room_agent.git.command import InBackground, git, one_line, require_hex, stream_git
from clean_room_agent.git.repository import is_partial_clone

# Every field is non-empty, so that two NULs in a row stand between commits and nowhere else.
FORMAT = "%x00%H%x00p{parents}%x00t%ct%x00a{author}%x00m%B"
# Without a limit git maps whole packs, which counts as its memory; the time is the same. The cache of contents is worth
# its memory only where files are compared line by line.
FRUGAL = ("-c", "core.packedGitWindowSize=1m", "-c", "core.packedGitLimit=16m")
SMALL_CACHE = (*FRUGAL, "-c", "core.deltaBaseCacheLimit=16m")
# glibc hands memory of large contents back and asks for it again for each. Other systems do not look at these.
KEPT_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}
PLAIN_DIFF = ("--no-textconv", "--no-ext-diff")
SUBMODULE = b"160000"
ONE_PATH = frozenset("ADMTUX")
LATEST = 1 << 40
"""Later times count as this one, some 35,000 years from now."""


class LogEntry(NamedTuple):
    """One commit. In text, bytes that are not UTF-8 are replaced; in paths, they become surrogates."""

    hash: str
    parents: str
    """Separated by spaces; empty if they were not asked for, or there are none."""
    timestamp: int
    """The committer's, in seconds since 1970 UTC."""
    author: str
    message: str
    files_changed: int
    """Submodules included."""
    paths: list[str]
    """What it changed, by the names after the commit, without submodules."""
    renames: list[tuple[str, str]]
    """(old path, new path), of files."""

    @property
    def is_merge(self) -> bool:
        """Whether it has several parents; only meaningful if parents were asked for."""
        return " " in self.parents


class Answer(InBackground[list[bytes]]):
    """A running git process whose whole output is read in the background, split at the separator."""

    def __init__(self, *arguments: str, top: Path, separator: bytes) -> None:
        self._is_unwanted = False
        super().__init__(lambda: self._collect_pieces(arguments, top, separator))

    def drop(self) -> None:
        """Stop git, since its answer is not wanted."""
        self._is_unwanted = True

    def _collect_pieces(self, arguments: tuple[str, ...], top: Path, separator: bytes) -> list[bytes]:
        pieces = []
        for piece in stream_git(*arguments, cwd=top, separator=separator, pins=KEPT_MEMORY):
            pieces.append(piece)
            if self._is_unwanted:
                break
        return pieces


def ask_log(top: Path, *revisions: str, limit: int | None, partial: bool, walk: bool = True) -> Answer:
    """Ask for the commits that `revisions` reach, newest first: at most `limit` without merges or, for None, all with
    their parents. Without `walk`, only these commits themselves, in the order given. `partial`: contents may be
    missing, so renames are found only by identical contents.
    """
    bound: tuple[str, ...] = () if walk else ("--no-walk=unsorted",)
    if limit is not None:
        bound += ("--no-merges", f"--max-count={limit}")
    form = FORMAT.format(parents="%P" if limit is None else "", author="%an")
    return Answer(
        *SMALL_CACHE,
        *("log", "-z", "--raw", "-M100%" if partial else "-M", "--no-abbrev"),
        *PLAIN_DIFF,
        f"--format={form}",
        *bound,
        "--end-of-options",
        *revisions,
        "--",
        top=top,
        separator=b"\0\0",
    )


def read_log(records: Iterable[bytes]) -> list[LogEntry]:
    """The answer to `ask_log`, in its order.

    Raises:
        GitError: it cannot be read.
    """
    entries = []
    for record in records:
        try:
            name, parents, when, author, message, *rest = record.decode().strip("\0").split("\0")
        except UnicodeDecodeError:
            text = record.decode("utf-8", "surrogateescape").strip("\0")
            name, parents, when, author, message, *rest = text.split("\0")
            author, message = _replace_surrogates(author), _replace_surrogates(message)
        paths = rest[1::2]
        renames: list[tuple[str, str]] = []
        changed = len(paths)
        if SUBMODULE in record or not ONE_PATH.issuperset([head[-1] for head in rest[::2]]):
            changed, paths, renames = _parse_files(name, rest)
        said, told = author[1:], message[1:].strip("\n")
        entries.append(LogEntry(name, parents[1:], seconds_of(when[1:]), said, told, changed, paths, renames))
    return entries


def seconds_of(text: str) -> int:
    """A commit's time in seconds since 1970, which may be anything that its author chose."""
    return min(max(int(text[:20] or 0), 0), LATEST)


def walk(top: Path, commit: str) -> Iterator[str]:
    """The commits reachable from the commit, itself first, merges included, in the order of `git log`; stopping early
    is cheap.

    Raises:
        GitError: git failed; it is raised after the last commit.
    """
    for line in stream_git(
        *SMALL_CACHE, "rev-list", "--end-of-options", require_hex(commit), "--", cwd=top, separator=b"\n"
    ):
        yield line.decode()


def graph_marks(top: Path, *, partial: bool) -> str:
    """A text that changes when history may read differently although no commit changed: shallow, grafted or partial
    clones.
    """
    common = _common_dir(top)
    marks = (_file_fingerprint(common / name) for name in ("shallow", "info/grafts"))
    return " ".join((*marks, "partial" if partial else "whole"))


def lacks_contents(top: Path) -> bool:
    """Whether this clone may lack contents that only a remote has."""
    try:
        text = (_common_dir(top) / "config").read_bytes().lower()
    except OSError:
        return is_partial_clone(top)
    # Asking git costs a process; a configuration that includes others may say it elsewhere.
    return (b"promisor" in text or b"[include" in text) and is_partial_clone(top)


def _parse_files(commit: str, tokens: list[str]) -> tuple[int, list[str], list[tuple[str, str]]]:
    """The number of files, their paths, and the renames."""
    paths, renames, changed = [], [], 0
    rest = iter(tokens)
    for token in rest:
        head = token.lstrip("\n")
        if not head.startswith(":"):
            raise GitError(f"git log: cannot read the record of {commit}: {head[:80]!r}")
        changed += 1
        kind = head.rpartition(" ")[2][:1]
        old = next(rest) if kind in "RC" else ""
        path = next(rest)
        if SUBMODULE.decode() not in head[:15]:
            paths.append(path)
            if kind == "R":
                renames.append((old, path))
    return changed, paths, renames


def _replace_surrogates(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _common_dir(top: Path) -> Path:
    place = top / ".git"
    if place.is_file():
        place = top / os.fsdecode(place.read_bytes()).removeprefix("gitdir: ").strip("\n")
        shared = place / "commondir"
        if shared.is_file():
            place /= os.fsdecode(shared.read_bytes()).strip("\n")
    return place


def _file_fingerprint(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else "-"


RAW = re.compile(r":(?P<before>\d+) (?P<after>\d+) \w+ \w+ (?P<status>[A-Z])\d*")


class PathChange(Struct, frozen=True, kw_only=True):
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
    files: tuple[PathChange, ...]


def stream_changes(git_dir: Path, head: str) -> Iterator[CommitChange]:
    """The commits that `head` reaches, parents before children.

    Raises:
        GitError: git failed; it is raised after the last commit that could be read.
    """
    pieces = stream_git(
        *FRUGAL,
        *("log", "-z", "--raw", "--numstat", "--no-renames", "--no-abbrev", "--reverse", "--topo-order"),
        *PLAIN_DIFF,
        f"--format={FORMAT.format(parents='%P', author='%an <%ae>')}",
        *("--end-of-options", require_hex(head), "--"),
        cwd=git_dir,
        separator=b"\0\0",
        pins={"GIT_DIR": str(git_dir)},
    )
    for piece in pieces:
        record = os.fsdecode(piece).strip("\0")
        if record:
            yield _commit_change(record)


def resolve_commit(git_dir: Path, revision: str) -> str | None:
    """The full id of the commit that `revision` names; None if it names none."""
    asked = git(
        "rev-parse", "--verify", "-q", "--end-of-options", f"{revision}^{{commit}}",
        cwd=git_dir, pins={"GIT_DIR": str(git_dir)}, ok=(0, 1, 128),
    )  # fmt: skip
    return one_line(asked) or None


def _commit_change(record: str) -> CommitChange:
    name, parents, when, author, message, *rest = record.split("\0")
    above = tuple(parents[1:].split())
    return CommitChange(
        hash=name,
        parents=above,
        timestamp=seconds_of(when[1:]),
        author=author[1:],
        message=message[1:].strip("\n"),
        files=_file_changes(rest) if len(above) == 1 else (),
    )


def _file_changes(rest: list[str]) -> tuple[PathChange, ...]:
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
                PathChange(
                    path=path,
                    status=match["status"],
                    is_file=all(mode.startswith("100") for mode in modes),
                    lines=lines.get(path),
                )
            )
    return tuple(found)
