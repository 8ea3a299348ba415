"""What the environment did, as an error with a remedy, if an exception that no other place expected says so.

Whatever is left after that is a bug.
"""

import contextlib
import errno
import os
from collections.abc import Mapping
from pathlib import Path

from clean_room_agent.errors import CraError, RecordError, RepositoryError, UsageError

REMEDIES: Mapping[int, tuple[str, str]] = {
    errno.ENOSPC: ("the disk is full", "free some space, then run the command again"),
    errno.EDQUOT: ("your quota of disk space is used up", "free some space, then run the command again"),
    errno.EMFILE: ("too many files are open", "allow more with `ulimit -n 1024`, then run the command again"),
    errno.ENFILE: ("too many files are open on this machine", "wait, or close other programs"),
    errno.EROFS: ("the file system is read-only", "let it be writable, or name another place"),
    errno.EACCES: (
        "this is not allowed",
        "you must own what is named there, or be allowed to read and write it",
    ),
    errno.EPERM: (
        "this is not allowed",
        "you must own what is named there, or be allowed to read and write it",
    ),
    errno.EIO: (
        "the disk failed",
        "look into the system's log; the record is safe where it was synced before",
    ),
    errno.ESTALE: ("the file server has lost a file that was open", "run the command again"),
    errno.ENOLCK: (
        "the file system gives no locks",
        "a network file system must be mounted with locks (NFS: without `nolock`, with a lock daemon); or work on a local disk",
    ),
    errno.ENAMETOOLONG: ("a name is too long for the file system", "choose a shorter one"),
    errno.ELOOP: ("links lead in a circle, or where none may be", "remove the link"),
    errno.ENOTDIR: ("a file is where a folder should be", "move it away"),
    errno.EISDIR: ("a folder is where a file should be", "move it away"),
    errno.EEXIST: ("something is where something else should be", "move it away"),
    errno.ENOMEM: ("the machine is short of memory", "close other programs, then run the command again"),
    errno.EAGAIN: (
        "the machine is short of processes or memory",
        "close other programs, or allow more with `ulimit -u`, then run the command again",
    ),
    errno.ENOTSUP: ("the file system does not support this", "work on a local disk"),
    errno.ETXTBSY: ("a program is being written", "run the command again"),
}
"""By error number: what is wrong, and what to do."""


def explain(error: Exception, repo: Path | None) -> CraError | None:
    """The error as the user should see it; None if it is a bug. `repo`: the repository, or a folder in it."""
    if isinstance(error, FileNotFoundError) and (gone := _missing_place()):
        return gone
    if isinstance(error, OSError) and error.errno is not None and error.errno in REMEDIES:
        wrong, remedy = REMEDIES[error.errno]
        what = f"{wrong}: {error.strerror}"
        named = [
            os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)
        ]
        return CraError(f"{what}: {' -> '.join(named)}" if named else what, hint=remedy)
    if isinstance(error, OverflowError) and "SQLite INTEGER" in str(error):
        return UsageError("a number has more than 64 bits", hint="give a smaller one")
    if isinstance(error, MemoryError):
        wrong, remedy = REMEDIES[errno.ENOMEM]
        return CraError(wrong, hint=remedy)
    return None if repo is None else _damage(repo)


def _missing_place() -> CraError | None:
    """An error if the current folder, or every folder for temporary files, is gone."""
    import tempfile

    try:
        Path.cwd()
    except FileNotFoundError:
        return RepositoryError("the current folder no longer exists", hint="cd to one that does")
    try:
        tempfile.gettempdir()
    except FileNotFoundError as exc:
        return UsageError(
            f"there is no folder for temporary files: {exc.strerror}",
            hint="let TMPDIR name one that can be written",
        )
    return None


def _damage(repo: Path) -> CraError | None:
    """An error that names the first of the repository's databases that is damaged."""
    from clean_room_agent.app import wiring
    from clean_room_agent.app.record_check import find_damage

    with contextlib.suppress(CraError, OSError):
        damage = find_damage(wiring.workspace_of(repo))
        if damage is not None:
            return RecordError(damage.text, hint=damage.remedy)
    return None
