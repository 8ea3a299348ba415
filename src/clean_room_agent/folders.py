"""Temporary folders, each locked by the process that uses it, so that those of killed processes can be found; and the
removal of untrusted folders, of any depth, with any names and permissions.

A folder's folders are moved up to where the removal began before they are emptied, so that there is neither recursion
nor a growing path, and the time is linear in the number of entries. If it is killed, everything that is left is below
the place where it began.
"""

import contextlib
import errno
import fcntl
import os
import re
import stat
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from clean_room_agent.errors import SYSTEM_FAULTS, RecordError, UsageError

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NOTHING: Mapping[str, tuple[int, int, int]] = MappingProxyType({})
FolderState = tuple[int, int, int]
"""Inode, time of the last change to entries or attributes (ctime, which users cannot set), mode."""
KINDS = ("bootstrap", "commit", "escapes", "fit", "index")
NAME = re.compile(rf"cra-(?:{'|'.join(KINDS)})-[A-Za-z0-9_]{{8}}\Z")
FRESH = 3600.0
"""Seconds for which an unlocked folder is left alone, since it may be about to be locked."""


def flock(handle: int, operation: int, place: Path) -> None:
    """Lock the open file or folder at `place` (`fcntl.flock`).

    Raises:
        BlockingIOError: `LOCK_NB` was given, and another process has the lock.
        RecordError: its file system gives no locks.
    """
    try:
        fcntl.flock(handle, operation)
    except BlockingIOError:
        raise
    except OSError as exc:
        raise RecordError(
            f"cannot lock {place}: {exc.strerror}", hint=SYSTEM_FAULTS[errno.ENOLCK][1]
        ) from exc


def remove_tree(place: Path) -> None:
    """Delete everything at `place`, if anything is there, without following links.

    Raises:
        OSError: something below it cannot be removed.
    """
    try:
        parent = os.open(place.parent, FOLDER & ~os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    try:
        remove_at(parent, place.name)
    finally:
        os.close(parent)


def remove_at(parent: int, name: str) -> None:
    """Delete `name` in the open folder `parent`.

    Raises:
        OSError: something cannot be removed.
    """
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):  # of a folder, Linux says the one and macOS the other
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise
        with _open_accessible(name, parent) as folder:
            _empty_folder(folder)
        os.rmdir(name, dir_fd=parent)


def remove_all_but(
    top: Path,
    files: Collection[str],
    *,
    folders: Collection[str] = (),
    kept: Collection[str] = (),
    known: Mapping[str, FolderState] = NOTHING,
) -> None:
    """Delete everything below `top` except `files` with their folders, empty `folders`, and what is `kept`.

    Files may have any content, but are not replaced by folders. Every folder that stays is accessible to its owner. A
    folder that differs from its `known` state is deleted with its contents, except for one that leads to what is kept;
    `top` itself gets its mode back, and loses extended attributes. All are paths relative to `top`, with forward
    slashes.

    Raises:
        OSError: something cannot be removed.
    """
    leading = _parents_of(kept)
    wanted = _Wanted(
        files=files,
        folders=_parents_of((*files, *folders)) | leading | {*folders},
        leading=leading,
        known=known,
    )
    waiting = [""]
    with _open_accessible(os.fspath(top), None) as root:
        _reset_metadata(root, known.get(""))
        while waiting:
            at = waiting.pop()
            with _open_accessible(at or ".", root) as folder, os.scandir(folder) as entries:
                found = {f"{at}/{entry.name}" if at else entry.name: entry for entry in entries}
                strange = {
                    path: entry
                    for path, entry in found.items()
                    if path not in kept and not wanted.has(path, entry)
                }
                for entry in strange.values():
                    remove_at(folder, entry.name)
                waiting += [
                    path
                    for path in found
                    if path in wanted.folders and path not in kept and path not in strange
                ]


class _Wanted(Struct, frozen=True, kw_only=True):
    files: Collection[str]
    folders: Collection[str]
    leading: Collection[str]
    """Folders that lead to what is kept."""
    known: Mapping[str, FolderState]

    def has(self, path: str, entry: "os.DirEntry[str]") -> bool:
        """Whether the entry at the path may stay."""
        if not entry.is_dir(follow_symlinks=False):
            return path in self.files
        if path not in self.folders:
            return False
        known = self.known.get(path)
        return (
            path in self.leading or known is None or _folder_state(entry.stat(follow_symlinks=False)) == known
        )


def folder_states(top: Path, files: Collection[str]) -> dict[str, FolderState]:
    """The current states of `top` (as "") and of the folders of `files`, for `remove_all_but`."""
    found = {}
    for path in ("", *_parents_of(files)):
        with contextlib.suppress(OSError):
            found[path] = _folder_state((top / path).lstat())
    return found


def _folder_state(about: os.stat_result) -> FolderState:
    return about.st_ino, about.st_ctime_ns, stat.S_IMODE(about.st_mode)


def _reset_metadata(folder: int, known: FolderState | None) -> None:
    """Reset the open folder to its recorded mode, without extended attributes and ACLs."""
    if known is not None:
        os.fchmod(folder, known[2])
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            for name in os.listxattr(folder):
                if name.startswith(("user.", "system.")):
                    os.removexattr(folder, name)


def _parents_of(paths: Collection[str]) -> set[str]:
    """The folders that contain the paths."""
    found: set[str] = set()
    for path in paths:
        above = path.rpartition("/")[0]
        while above and above not in found:
            found.add(above)
            above = above.rpartition("/")[0]
    return found


def _empty_folder(top: int) -> None:
    """Empty the open folder."""
    mark, count = os.urandom(8).hex(), 0
    waiting = _remove_files(top)
    while waiting:
        name = waiting.pop()
        with _open_accessible(name, top) as folder:
            for inner in _remove_files(folder):
                count += 1
                fresh = f"{mark}-{count}"
                _move_folder(inner, folder, fresh, top)
                waiting.append(fresh)
        os.rmdir(name, dir_fd=top)


def _remove_files(folder: int) -> list[str]:
    """Delete everything but folders in the open folder, and return the names of the folders."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if not is_folder:
            os.unlink(name, dir_fd=folder)
    return [name for name, is_folder in found if is_folder]


def _move_folder(name: str, source: int, fresh: str, target: int) -> None:
    try:
        os.rename(name, fresh, src_dir_fd=source, dst_dir_fd=target)
    except PermissionError:  # who moves a folder must be able to write in it
        with _open_accessible(name, source):
            os.rename(name, fresh, src_dir_fd=source, dst_dir_fd=target)


@contextlib.contextmanager
def _open_accessible(path: str, at: int | None) -> Iterator[int]:
    """A handle of the folder, after making it accessible to its owner."""
    try:
        handle = os.open(path, FOLDER, dir_fd=at)
    except PermissionError:
        os.chmod(path, stat.S_IRWXU, dir_fd=at)
        handle = os.open(path, FOLDER, dir_fd=at)
    try:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            os.fchmod(handle, mode | stat.S_IRWXU)
        yield handle
    finally:
        os.close(handle)


def user_folder(variable: str, below_home: str) -> Path:
    """The user's folder that the variable names, or the one below the home folder. A relative one is ignored, as XDG requires:
    it would depend on the current folder.

    Raises:
        UsageError: there is no home folder.
    """
    named = os.environ.get(variable, "")
    return Path(named) if named.startswith("/") else home_folder() / below_home


def home_folder() -> Path:
    """The user's home folder.

    Raises:
        UsageError: nothing says where it is.
    """
    try:
        home = Path.home()
    except RuntimeError:
        home = Path()
    if not home.is_absolute():
        raise UsageError("your home folder is not known", hint="set HOME to its absolute path")
    return home


@contextlib.contextmanager
def temporary_folder(kind: str) -> Iterator[Path]:
    """A new, private folder, removed at the end, however deep it is; while this process lives, `abandoned_folders` does not name it."""
    import tempfile  # noqa: PLC0415 - loads `random` and `shutil`, and every command imports this module

    folder = Path(tempfile.mkdtemp(prefix=f"cra-{kind}-"))
    try:
        with working_in(folder):
            yield folder
    finally:
        remove_tree(folder)  # `shutil.rmtree` has a limit of some thousand levels


@contextlib.contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Lock the folder, so that `is_free` is False for it in the block."""
    handle = os.open(folder, FOLDER)
    try:
        with contextlib.suppress(OSError):  # a file system without locks: its age protects the folder
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def abandoned_folders(now: float | None = None) -> tuple[Path, ...]:
    """This user's temporary folders that no process uses, sorted, without those of the last hour."""
    import tempfile  # noqa: PLC0415 - as above

    before = (time.time() if now is None else now) - FRESH
    found = []
    with os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if not NAME.match(entry.name) or not entry.is_dir(follow_symlinks=False):
                continue
            about = entry.stat(follow_symlinks=False)
            if about.st_uid == os.geteuid() and about.st_mtime < before and is_free(Path(entry.path)):
                found.append(Path(entry.path))
    return tuple(sorted(found))


def remove_abandoned(folder: Path) -> bool:
    """Delete the folder unless a process uses it; returns whether it was deleted.

    Raises:
        OSError: something in it cannot be removed.
    """
    if not is_free(folder):
        return False
    remove_tree(folder)
    return True


def is_free(folder: Path) -> bool:
    """Whether the folder exists, and no process holds it by `working_in`."""
    try:
        handle = os.open(folder, FOLDER)
    except FileNotFoundError:
        return False
    except PermissionError:
        return True  # without the mode to look into it, nobody works there
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
