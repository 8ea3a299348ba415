"""What was committed: the log, differences, trees and blobs. Read only."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clean_room_agent.errors import GitError
from clean_room_agent.git.command import stream_git

# Every field is non-empty, so that two NULs in a row stand between commits and nowhere else.
LOG_FORMAT = "%x00%H%x00%ct%x00a%an%x00e%ae%x00m%B"


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


def log_raw(top: Path, *, since: str | None, limit: int, line_counts: bool = False) -> Iterator[bytes]:
    """One record for each commit that HEAD reaches, newest first, as it comes; see `parse_log_record`.

    Merges are left out. `since` is a commit whose own history, itself included, is left out. At most `limit`
    commits. Line counts cost ten times the rest.

    Raises:
        GitError: after the last record, when git failed: `since` is not known, or there is no commit.
    """
    arguments = ["log", "-z", "--raw", "-M", "--no-abbrev", "--no-merges", f"--max-count={limit}"]
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
