"""Reads commits: diffs, trees and blobs. Read-only."""

import functools
import os
from collections.abc import Mapping

from msgspec import Struct

from clean_room_agent.errors import GitError
from clean_room_agent.git.command import names, require_hex
from clean_room_agent.git.repository import Repository

KEPT_ANSWERS = 32
"""Answers to keep: a step asks for the same trees, blobs and diffs several times, each time by a process."""
KEPT_LISTINGS = 4
"""The same for all that is in a commit: head, attempt, and what each was made on."""

LOOKED_AT = 8_000
"""Bytes in which git itself looks for a NUL to recognise binary files."""
PLAIN = ("--no-renames", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/")


class FileStat(Struct, frozen=True, kw_only=True):
    """Lines added to and deleted from one file; None if it is binary."""

    path: str
    added: int | None
    deleted: int | None


class ChangedPath(Struct, frozen=True, kw_only=True):
    """A path that differs between two commits; `status` is A, M, D or T (its type changed)."""

    path: str
    status: str


def diff(repo: Repository, base: str, commit: str, *paths: str) -> str:
    """The unified diff, of all or of `paths`, sorted by path, without renames; not UTF-8: bytes are replaced."""
    return diff_bytes(repo, base, commit, *paths).decode("utf-8", "replace")


def readable_diff(repo: Repository, base: str, commit: str) -> str:
    """A diff for people rather than `git apply`: without object names, and with only the names of binary files."""
    lines = []
    binary = False
    for line in diff(repo, base, commit).split("\n"):
        if line.startswith("diff --git "):
            binary = False
        if line == "GIT binary patch":
            binary = True
            lines.append("Binary files differ")
        if not binary and not line.startswith("index "):
            lines.append(line)
    return "\n".join(lines)


def diff_bytes(repo: Repository, base: str, commit: str, *paths: str) -> bytes:
    """The patch as `git apply` takes it, binary files included."""
    command = ("diff-tree", "-r", "-p", "--binary", "--full-index", *PLAIN, "--unified=3")
    patch = _read_objects(repo, (base, commit), *command, "--end-of-options", base, commit, "--", *paths)
    if b"\nGIT binary patch\n" not in patch:
        return patch
    counts = _line_counts(repo, base, commit, *paths)
    hidden = _called_binary(repo, base, commit, counts)
    if not hidden:
        return patch
    return b"".join(
        _read_objects(repo, (base, commit), *command, *text, "--end-of-options", base, commit, "--", path)
        for path in sorted(counts, key=os.fsencode)
        for text in (("--text",) if path in hidden else (),)
    )


class TreeEntry(Struct, frozen=True, kw_only=True):
    """What a commit has at a path."""

    mode: str
    """100644, 100755, 120000 (a link) or 160000 (a submodule)."""
    kind: str
    """blob, or commit for a submodule."""
    object_name: str


def diff_stat(repo: Repository, base: str, commit: str) -> tuple[FileStat, ...]:
    """The lines that changed in each file, sorted by path."""
    counts = _line_counts(repo, base, commit)
    for path in _called_binary(repo, base, commit, counts):
        lines = diff_bytes(repo, base, commit, path).partition(b"\n@@")[2].split(b"\n")
        counts[path] = sum(line[:1] == b"+" for line in lines), sum(line[:1] == b"-" for line in lines)
    return tuple(
        FileStat(path=path, added=added, deleted=deleted) for path, (added, deleted) in sorted(counts.items())
    )


def changed_paths(repo: Repository, base: str, commit: str) -> tuple[ChangedPath, ...]:
    """The files, links and submodules that differ, sorted by path; a rename is a deletion and an addition."""
    old, new = list_tree(repo, base), list_tree(repo, commit)
    return tuple(
        ChangedPath(path=path, status=_change_status(old.get(path), new.get(path)))
        for path in sorted({*old, *new})
        if old.get(path) != new.get(path)
    )


def _change_status(before: TreeEntry | None, after: TreeEntry | None) -> str:
    if before is None or after is None:
        return "A" if before is None else "D"
    return "M" if before.mode[:3] == after.mode[:3] else "T"


def has_commit(repo: Repository, commit: str) -> bool:
    """Whether the commit and everything that it changes can be read: after a power cut, objects may be empty."""
    try:
        whole = ("show", "--format=", "--no-ext-diff", "--no-textconv", "--binary", "--end-of-options")
        repo.git(*whole, require_hex(commit))
    except GitError:
        return False
    return True


def date_and_message(repo: Repository, commit: str) -> tuple[str, str]:
    """When the commit was made (in git's raw format), and its message."""
    said = repo.git(
        "show", "-s", "--date=raw", "--format=%cd%n%B", "--end-of-options", require_hex(commit)
    ).decode("utf-8", "replace")
    date, _, message = said.partition("\n")
    return date, message.rstrip("\n") + "\n"


def read_blob(repo: Repository, commit: str, path: str) -> bytes | None:
    """A file of a commit as it is stored (line endings may differ from a worktree's); None if it has no such file.

    Raises:
        GitError: there is no such commit.
    """
    entry = list_tree(repo, commit).get(path)
    return read_object(repo, entry.object_name) if entry is not None and entry.kind == "blob" else None


def read_object(repo: Repository, name: str) -> bytes:
    """The bytes of the blob of this name."""
    return _read_objects(repo, (name,), "cat-file", "blob", require_hex(name))


def list_tree(repo: Repository, commit: str) -> Mapping[str, TreeEntry]:
    """All files, links and submodules of a commit, by path, in git's order."""
    return _list_once(repo, require_hex(commit))


@functools.lru_cache(maxsize=KEPT_LISTINGS)
def _list_once(repo: Repository, commit: str) -> Mapping[str, TreeEntry]:
    listed = names(repo.git("ls-tree", "-r", "-z", "--full-tree", "--", commit))
    found = {}
    for head, _, path in (entry.partition("\t") for entry in listed):
        mode, kind, name = head.split(" ")
        found[path] = TreeEntry(mode=mode, kind=kind, object_name=name)
    return found


def _line_counts(
    repo: Repository, base: str, commit: str, *paths: str
) -> dict[str, tuple[int | None, int | None]]:
    """Lines added and deleted, by path; None for what git treats as binary."""
    command = ("diff-tree", "-r", "-z", "--numstat", *PLAIN)
    listed = _read_objects(repo, (base, commit), *command, "--end-of-options", base, commit, "--", *paths)
    lines = (entry.split("\t", 2) for entry in names(listed))
    return {
        path: (None, None) if added == "-" else (int(added), int(deleted)) for added, deleted, path in lines
    }


def _called_binary(
    repo: Repository, base: str, commit: str, counts: dict[str, tuple[int | None, int | None]]
) -> frozenset[str]:
    """The text files whose lines git does not show because an attribute says so (`*.py -diff`)."""

    def is_text(path: str) -> bool:
        sides = (read_blob(repo, base, path), read_blob(repo, commit, path))
        return not any(side is not None and b"\0" in side[:LOOKED_AT] for side in sides)

    return frozenset(path for path, (added, _) in counts.items() if added is None and is_text(path))


def _read_objects(repo: Repository, objects: tuple[str, ...], *arguments: str) -> bytes:
    """The output of git about `objects` (full names); cached, since objects never change."""
    for name in objects:
        require_hex(name)
    return _read_once(repo, *arguments)


@functools.lru_cache(maxsize=KEPT_ANSWERS)
def _read_once(repo: Repository, *arguments: str) -> bytes:
    return repo.git(*arguments)
