"""What was committed: the log, differences, trees and blobs. Read only."""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clean_room_agent.errors import GitError
from clean_room_agent.git.command import names, one_line, stream_git
from clean_room_agent.git.repository import Repository, is_partial_clone

# Every field is non-empty, so that two NULs in a row stand between commits and nowhere else.
LOG_FORMAT = "%x00%H%x00%ct%x00a%an%x00e%ae%x00m%B"

HEX = re.compile(r"[0-9a-f]+")
KEPT_ANSWERS = 32
"""A step asks for the same trees, blobs and differences several times; each question is a process."""

PLAIN = ("--no-renames", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedFile:
    """One file of a logged commit. `status` is git's letter; `old_path` is set for R and C.

    `added` and `deleted` are lines; None where they were not asked for, or the file is binary.
    """

    status: str
    path: str
    old_path: str | None
    added: int | None
    deleted: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCommit:
    """One commit of the log. `timestamp` is the committer's, in seconds since 1970 UTC; files as git lists them."""

    hash: str
    timestamp: int
    author: str
    email: str
    message: str
    files: tuple[LoggedFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStat:
    """Lines added to and deleted from one file; None where it is binary."""

    path: str
    added: int | None
    deleted: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPath:
    """A path that differs between two commits; `status` is A, M, D or T (its type changed)."""

    path: str
    status: str


def diff(repo: Repository, base: str, commit: str, *paths: str) -> str:
    """The unified diff, of all or of `paths`, sorted by path, without renames; not UTF-8: bytes are replaced."""
    return diff_bytes(repo, base, commit, *paths).decode("utf-8", "replace")


def diff_bytes(repo: Repository, base: str, commit: str, *paths: str) -> bytes:
    """The patch as `git apply` takes it, binary files included."""
    command = ("diff-tree", "-r", "-p", "--binary", "--full-index", *PLAIN, "--unified=3")
    return _read(repo, (base, commit), *command, base, commit, "--", *paths)


def diff_stat(repo: Repository, base: str, commit: str) -> tuple[FileStat, ...]:
    """The lines that changed in each file, sorted by path."""
    lines = (entry.split("\t", 2) for entry in names(_diff_list(repo, "--numstat", base, commit)))
    stats = (
        FileStat(path=path, added=_number(added.encode()), deleted=_number(deleted.encode()))
        for added, deleted, path in lines
    )
    return tuple(sorted(stats, key=lambda entry: entry.path))


def changed_paths(repo: Repository, base: str, commit: str) -> tuple[ChangedPath, ...]:
    """The files, links and submodules that differ, sorted by path; a rename is a deletion and an addition."""
    fields = names(_diff_list(repo, "--name-status", base, commit))
    pairs = zip(fields[0::2], fields[1::2], strict=True)
    changed = (ChangedPath(path=path, status=status) for status, path in pairs)
    return tuple(sorted(changed, key=lambda entry: entry.path))


def read_blob(repo: Repository, commit: str, path: str) -> bytes | None:
    """A file of a commit as it is stored (line ends may differ from a work tree's); None if it has no such file.

    Raises:
        GitError: there is no such commit.
    """
    entry = _tree_entry(repo, commit, path)
    return None if entry is None else _read(repo, (entry[1],), "cat-file", "blob", entry[1])


def file_mode(repo: Repository, commit: str, path: str) -> str | None:
    """100644, 100755 or 120000; None if the commit has no such file."""
    entry = _tree_entry(repo, commit, path)
    return None if entry is None else entry[0]


def list_tree(repo: Repository, commit: str) -> tuple[str, ...]:
    """The regular files of a commit, sorted; neither links nor submodules."""
    listed = names(_read(repo, (commit,), "ls-tree", "-r", "-z", "--full-tree", commit))
    entries = (entry.partition("\t") for entry in listed)
    return tuple(sorted(path for head, _, path in entries if head.startswith("100")))


def log_raw(top: Path, *, since: str | None, limit: int, line_counts: bool = False) -> Iterator[bytes]:
    """One record for each commit that HEAD reaches, newest first, as it comes; see `parse_log_record`.

    Merges are left out. `since` is a commit whose own history, itself included, is left out. At most `limit`
    commits. Line counts cost ten times the rest.

    Raises:
        GitError: after the last record, when git failed: `since` is not known, or there is no commit.
    """
    # A partial clone lacks the contents that the search for changed renames compares.
    renames = "-M100%" if is_partial_clone(top) else "-M"
    arguments = ["log", "-z", "--raw", renames, "--no-abbrev", "--no-merges", f"--max-count={limit}"]
    if line_counts:
        arguments.append("--numstat")
    arguments += ["--no-textconv", "--no-ext-diff", f"--format={LOG_FORMAT}", "HEAD"]
    if since is not None:
        arguments.append(f"^{since}")
    for record in stream_git(*arguments, "--", cwd=top, separator=b"\0\0"):
        yield record.strip(b"\0")


def parse_log_record(record: bytes) -> LoggedCommit:
    """The commit that one item of `log_raw` holds. Text that is not UTF-8 has its bytes replaced; paths keep them."""
    commit, when, author, email, message, *rest = record.split(b"\0")
    files = _files(iter(rest), commit)
    return LoggedCommit(
        hash=commit.decode(),
        timestamp=int(when),
        author=author[1:].decode("utf-8", "replace"),
        email=email[1:].decode("utf-8", "replace"),
        message=message[1:].decode("utf-8", "replace").strip("\n"),
        files=files,
    )


def _files(tokens: Iterator[bytes], commit: bytes) -> tuple[LoggedFile, ...]:
    entries: list[tuple[str, bytes | None, bytes]] = []
    counts: dict[bytes, tuple[int | None, int | None]] = {}
    for token in tokens:
        head = token.lstrip(b"\n")
        if head.startswith(b":"):
            status = head.rpartition(b" ")[2].decode()
            old = next(tokens) if status[0] in "RC" else None
            entries.append((status[0], old, next(tokens)))
        elif head.count(b"\t") >= 2:
            added, deleted, path = head.split(b"\t", 2)
            if not path:
                next(tokens)
                path = next(tokens)
            counts[path] = (_number(added), _number(deleted))
        elif head:
            raise GitError(f"git log: cannot read the record of {commit.decode()}: {head[:80]!r}")
    return tuple(
        LoggedFile(
            status=status,
            path=_name(path),
            old_path=None if old is None else _name(old),
            added=counts.get(path, (None, None))[0],
            deleted=counts.get(path, (None, None))[1],
        )
        for status, old, path in entries
    )


def _number(text: bytes) -> int | None:
    return None if text == b"-" else int(text)


def _name(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _diff_list(repo: Repository, form: str, base: str, commit: str) -> bytes:
    return repo.git("diff-tree", "-r", "-z", form, *PLAIN, base, commit)


def _read(repo: Repository, objects: tuple[str, ...], *arguments: str) -> bytes:
    """What git says of `objects`; asked once where all are full object names, since those never change."""
    fixed = all(len(name) == len(repo.head) and HEX.fullmatch(name) for name in objects)
    return _read_once(repo, *arguments) if fixed else repo.git(*arguments)


@functools.lru_cache(maxsize=KEPT_ANSWERS)
def _read_once(repo: Repository, *arguments: str) -> bytes:
    return repo.git(*arguments)


def _tree_entry(repo: Repository, commit: str, path: str) -> tuple[str, str] | None:
    """The mode and the blob's name."""
    listed = one_line(_read(repo, (commit,), "ls-tree", "-z", "--full-tree", commit, "--", path))
    mode, _, rest = listed.partition("\t")[0].partition(" ")
    kind, _, name = rest.partition(" ")
    return (mode, name) if kind == "blob" else None
