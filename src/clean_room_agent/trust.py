"""Remembers which `.clean_room` folders this user made; one that came with a repository is not trusted.

A folder is the user's own if a note in the user's state folder, outside of any repository, has its path, its inode and
the random key that is stored in it. The key distinguishes it from another folder with the reused inode of a deleted
one; the device number is left out, since it may change at each boot.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from clean_room_agent.errors import UsageError
from clean_room_agent.file_contents import atomic_write, sync_folder
from clean_room_agent.folders import flock, user_folder
from clean_room_agent.git.repository import tracked_below
from clean_room_agent.safe_open import KINDS, read_bytes

KEY = "trust.key"
KEY_BYTES = 32
MAX_DEPTH = 40
SHORT_OF = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO})
"""Errors that say nothing about the folder."""
NOTES = "folders"
TRUST_COMMAND = "cra init --trust"


def state_folder() -> Path:
    """The user's state folder for this program.

    Raises:
        UsageError: there is no home folder.
    """
    return user_folder("XDG_STATE_HOME", ".local/state") / "cra"


def require_trust(folder: Path, listed: Iterable[str] | None = None) -> None:
    """Check that the `.clean_room` of a repository is the user's own or does not exist, that git tracks nothing in it,
    and that it contains nothing but files and folders.

    Args:
        folder: it, whether it exists or not.
        listed: the paths that git tracks or would offer to add, if they are known: git is then only asked again if one
            of them begins with the folder's name, in any case.

    Raises:
        UsageError: it is not; nothing of it was used.
    """
    name = folder.name.lower()
    if listed is None or any(path[: len(name)].lower() == name for path in listed):
        _refuse_tracked(folder)
    if os.path.lexists(folder):
        _refuse_foreign(folder)
        _refuse_others(folder)


def claim(folder: Path) -> None:
    """Make sure that the folder exists and is the user's own; if it is missing or still empty, it is created (0700).

    Raises:
        UsageError: somebody else made it, or the state folder cannot be written.
        OSError: it cannot be created.
    """
    if is_ours(folder):
        return
    _refuse_link(folder)
    with _one_at_a_time():
        if is_ours(folder):
            return
        if not _is_new(folder):
            raise _foreign(folder)
        if not folder.exists():
            folder.mkdir(mode=0o700)
            sync_folder(folder.parent)
        _note_down(folder)


def trust(folder: Path) -> None:
    """Trust the folder from now on, whoever made it.

    Raises:
        UsageError: git tracks something in it, it is a link, or it contains a link, a FIFO, a socket or a device.
    """
    _refuse_tracked(folder)
    _refuse_link(folder)
    _refuse_others(folder)
    with _one_at_a_time():
        _note_down(folder)


def forget(folder: Path) -> None:
    """Stop trusting the folder."""
    _note_of(folder).unlink(missing_ok=True)


def is_ours(folder: Path) -> bool:
    """Whether this user made the folder, or trusted it at its current path."""
    try:
        key = read_bytes(folder, KEY, max_bytes=2 * KEY_BYTES)
        return read_bytes(_note_of(folder).parent, _note_of(folder).name) == _note(folder, key)
    except OSError as exc:
        if exc.errno in SHORT_OF:
            raise
        return False


def _is_new(folder: Path) -> bool:
    """Whether the folder contains at most what a process that died while creating it may have left."""
    try:
        return {*os.listdir(folder)} <= {KEY}  # noqa: PTH208 - names alone
    except FileNotFoundError:
        return True
    except OSError:  # a file, or somebody else's
        return False


def _refuse_foreign(folder: Path) -> None:
    _refuse_link(folder)
    if is_ours(folder):
        return
    with _one_at_a_time():  # another process may be about to make it
        if not is_ours(folder) and not _is_new(folder):
            raise _foreign(folder)


def _refuse_tracked(folder: Path) -> None:
    tracked = tracked_below(folder.parent, folder.name)
    if tracked:
        forget(folder)
        raise UsageError(
            f"git tracks {tracked[0]}: it came with the repository, so it is not used",
            hint=f"remove it with its files: git rm -r -f {Path(tracked[0]).parts[0]}; then commit that, and run `cra init`",
        )


def _refuse_link(folder: Path) -> None:
    if folder.is_symlink():
        raise UsageError(f"{folder} is a link", hint="remove it: the record belongs in the repository itself")


def _refuse_others(folder: Path) -> None:
    """Refuse what is neither a file nor a folder: a link leads anywhere, and a FIFO never answers."""
    for entry in entries_below(folder):
        if entry.is_symlink():
            raise UsageError(f"{entry.path} is a link", hint="remove it: links are not followed there")
        if not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(FileNotFoundError):
                kind = KINDS[stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode)]
                raise UsageError(f"{entry.path} is {kind}", hint="remove it: cra makes only files there")


def entries_below(folder: Path) -> Iterator["os.DirEntry[str]"]:
    """Everything below the folder of a workspace, sorted by name within each folder; unreadable folders are left out.

    Raises:
        UsageError: folders are nested more deeply in it than this program ever does.
    """
    waiting = [(os.fspath(folder), 0)]
    while waiting:
        at, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise UsageError(
                f"folders are nested too deeply in {folder}: {at}",
                hint="remove them: cra never nests folders so deeply",
            )
        with contextlib.suppress(OSError), os.scandir(at) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, depth + 1))


def _foreign(folder: Path) -> UsageError:
    return UsageError(
        f"{folder} is not known to be yours: it came with the repository, was moved or copied, or an older cra made it",
        hint="its config.toml says what runs here and where prompts go: read it, then give "
        f"`{TRUST_COMMAND}`; or delete the folder",
    )


def _note_down(folder: Path) -> None:
    """Write a new key to the note and to the folder, in this order, since a folder without a key counts as new."""
    key = os.urandom(KEY_BYTES).hex().encode()
    atomic_write(_note_of(folder), _note(folder, key), private=True)
    (folder / KEY).unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(folder / KEY, flags, 0o600), "wb") as file:  # noqa: PTH123 - a handle, not a path
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(folder)


def _note_of(folder: Path) -> Path:
    name = hashlib.sha256(os.fsencode(_place(folder))).hexdigest()[:32]
    return state_folder() / NOTES / name


def _note(folder: Path, key: bytes) -> bytes:
    found = folder.lstat()
    kind = b"folder" if stat.S_ISDIR(found.st_mode) else b"other"
    return b"%s\n%s %d\n%s\n" % (os.fsencode(_place(folder)), kind, found.st_ino, key)


def _place(folder: Path) -> Path:
    """The folder's canonical path, whatever links lead to the repository."""
    return folder.parent.resolve() / folder.name


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Hold the lock for creating folders."""
    notes = state_folder() / NOTES
    try:
        for folder in (notes.parent, notes):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(notes, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as exc:
        raise UsageError(
            f"cannot make {notes}: {exc.strerror}",
            hint="which folders are yours is noted there; let XDG_STATE_HOME name a folder that can be written",
        ) from exc
    try:
        flock(handle, fcntl.LOCK_EX, notes)
        yield
    finally:
        os.close(handle)
