"""Replaces files of the user's tree: each is at any moment the old one or the new one.

Everything new is written and synced beside the files before the first of them changes; what is left then are renames and
removals, which need no space. What a kill leaves between two of these is completed, or taken back, by the next update in that
direction: a path that is already as it becomes is not part of it.
"""

import contextlib
import errno
import hashlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from clean_room_agent import safe_open
from clean_room_agent.cancellation import on_interrupt
from clean_room_agent.errors import RepositoryError
from clean_room_agent.folders import remove_at

ABSENT = ""
WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
SIGNATURES = frozenset({"security.ima", "security.evm"})
"""Extended attributes that are about the old content."""


class NewFile(Struct, frozen=True, kw_only=True):
    """What a path is to become."""

    data: bytes
    """The content; the target of a link."""
    link: bool = False
    executable: bool | None = None
    """None: as the file that it replaces."""


class _ChangedError(OSError):
    """The user has changed the path since it was seen."""


def update_tree(
    top: Path, files: Mapping[str, NewFile | None], seen: Mapping[str, str], *, what: str
) -> None:
    """Give each path of `files` its new content, or remove it (None).

    A file that replaces another keeps its mode, owner and extended attributes. Missing folders are created, and folders
    that become empty are removed.

    Args:
        top: the folder that the paths are relative to; its user holds a lock, so that there is one update at a time.
        files: what each path is to become.
        seen: the state of each path (`state_of`) on which the new content is based.
        what: for messages, such as `applying run 3f0c8a52`.

    Raises:
        RepositoryError: a path has changed since it was seen, cannot be written, or cannot keep its owner or attributes.
            Nothing was changed, unless the message says that it stopped half way.
    """
    # Removals first: where names differ only in case, the new name may be that of the file that goes.
    paths = sorted(files, key=lambda path: (files[path] is not None, path))
    made: list[str] = []
    try:
        for path in paths:
            if files[path] is not None:
                made += _make_folders(top, path)
        for path in paths:
            _prepare_file(top, path, files[path], seen[path])
    except BaseException as error:
        remove_leftovers(top, paths)
        for path in reversed(made):
            _remove_empty(top, path)
        if isinstance(error, OSError):
            raise _update_failure(
                error, f"{what} failed: {_error_reason(error)}; nothing was changed"
            ) from error
        raise
    try:
        with on_interrupt(lambda: None):  # it takes no time, and half of it is worse than all
            for path in paths:
                _replace_file(top, path, seen[path], removed=files[path] is None)
    except OSError as error:
        raise _update_failure(error, f"{what} stopped half way: {_error_reason(error)}") from error
    for folder in sorted({folder for path in paths if files[path] is None for folder in folders_of(path)}):
        _remove_empty(top, folder)


def remove_leftovers(top: Path, paths: Iterable[str]) -> None:
    """Remove what an update of these paths that was killed has left beside them."""
    for path in paths:
        with contextlib.suppress(OSError), safe_open.open_parent(top, path) as (folder, _):
            remove_at(folder, _new_name(path))


def state_of(top: Path, path: str) -> str:
    """What is at the path: "" for nothing; else its kind, and for a file or link a hash of the content or target.

    Raises:
        OSError: it cannot be read, or the way to it is a link.
    """
    try:
        with safe_open.open_parent(top, path) as (folder, name):
            return _entry_state(folder, name)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT


def folders_of(path: str) -> Iterator[str]:
    """The folders that contain the path, inner ones first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _entry_state(folder: int, name: str) -> str:
    """The state of `name` in an open folder."""
    try:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return ABSENT
    if stat.S_ISLNK(about.st_mode):
        target = os.fsencode(os.readlink(name, dir_fd=folder))
        return f"link:{hashlib.sha256(target).hexdigest()}"
    if stat.S_ISDIR(about.st_mode):
        return "folder:"
    if not stat.S_ISREG(about.st_mode):
        return f"other:{stat.S_IFMT(about.st_mode):o}"
    handle = os.open(name, safe_open.READ, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        return f"file:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _new_name(path: str) -> str:
    """The name beside it of what a path becomes; the same each time, so that what a kill left is found again."""
    return f".cra-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}.new"


@contextlib.contextmanager
def _open_containing_folder(top: Path, path: str) -> Iterator[tuple[int, str]]:
    """The folder and the name of the path. Errors name it, not a temporary name."""
    try:
        with safe_open.open_parent(top, path) as (folder, name):
            yield folder, name
    except OSError as error:
        error.filename, error.filename2 = path, None
        raise


def _make_folders(top: Path, path: str) -> Iterator[str]:
    """Create the missing ones of the path's folders; yields each that was."""
    for above in reversed([*folders_of(path)]):
        with _open_containing_folder(top, above) as (folder, name), contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
            yield above
            _sync_handle(folder)


def _prepare_file(top: Path, path: str, file: NewFile | None, seen: str) -> None:
    """Write beside the path what it is to become."""
    with _open_containing_folder(top, path) as (folder, name):
        _require_state(folder, name, path, seen)
        if file is not None:
            _write_file(folder, _new_name(path), file, like=name if seen.startswith("file:") else None)


def _require_state(folder: int, name: str, path: str, seen: str) -> None:
    if _entry_state(folder, name) != seen:
        raise _ChangedError(errno.EBUSY, "changed here meanwhile", path)


def _replace_file(top: Path, path: str, seen: str, *, removed: bool) -> None:
    with _open_containing_folder(top, path) as (folder, name):
        _require_state(folder, name, path, seen)
        if removed:
            os.unlink(name, dir_fd=folder)
        else:
            os.replace(_new_name(path), name, src_dir_fd=folder, dst_dir_fd=folder)
        _sync_handle(folder)


def _remove_empty(top: Path, path: str) -> None:
    with contextlib.suppress(OSError), safe_open.open_parent(top, path) as (folder, name):
        os.rmdir(name, dir_fd=folder)
        _sync_handle(folder)


def _update_failure(error: OSError, words: str) -> RepositoryError:
    match error.errno:
        case _ if isinstance(error, _ChangedError):
            remedy = "look at the file"
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            remedy = "free some space"
        case errno.EACCES | errno.EROFS:
            remedy = "make the files and their folders writable"
        case errno.EPERM | errno.EOPNOTSUPP:
            remedy = (
                "the new file must be able to keep the old one's owner and attributes: do this as their owner"
            )
        case errno.EBUSY | errno.EXDEV:
            remedy = "something is mounted there: unmount it"
        case _:
            remedy = "remove the cause"
    return RepositoryError(words, hint=f"{remedy}; then run the command again")


def _error_reason(error: OSError) -> str:
    names = (name for name in (error.filename, error.filename2) if isinstance(name, str | bytes))
    return ": ".join((*dict.fromkeys(os.fsdecode(name) for name in names), error.strerror or str(error)))


def _write_file(folder: int, name: str, file: NewFile, *, like: str | None) -> None:
    """Create and sync a file, with the mode, owner and attributes of the file `like`."""
    if file.link:
        os.symlink(os.fsdecode(file.data), name, dir_fd=folder)
        return
    # Without another file's, it gets the mode that any program would give it here; else, it is closed until it has that.
    mode = 0o600 if like is not None else 0o777 if file.executable else 0o666
    handle = os.open(name, WRITE, mode, dir_fd=folder)
    try:
        view = memoryview(file.data)
        while view:
            view = view[os.write(handle, view) :]
        if like is not None:
            original = os.open(like, safe_open.READ, dir_fd=folder)
            try:
                _carry_over(original, handle, executable=file.executable)
            finally:
                os.close(original)
        _sync_handle(handle)
    finally:
        os.close(handle)


def _carry_over(original: int, handle: int, *, executable: bool | None) -> None:
    """Give the file the owner, mode and extended attributes of the other; whether it is executable may change.

    It gets no setuid and setgid bits, as when it is written by anybody but root.
    """
    about, now = os.fstat(original), os.fstat(handle)
    mode = about.st_mode & 0o1777
    if executable is not None:
        mode = mode | mode >> 2 & 0o111 if executable else mode & ~0o111
    if sys.platform == "linux":
        _carry_extended(original, handle)
    if (now.st_uid, now.st_gid) != (about.st_uid, about.st_gid):
        os.fchown(handle, about.st_uid, about.st_gid)
    os.fchmod(handle, mode)


def _carry_extended(original: int, handle: int) -> None:
    try:
        wanted = {name: os.getxattr(original, name) for name in os.listxattr(original)}
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            return
        raise
    now = {name: os.getxattr(handle, name) for name in os.listxattr(handle)}
    for name in sorted(now.keys() - wanted.keys() - SIGNATURES):
        if name.startswith(("user.", "system.")):
            os.removexattr(handle, name)
    for name, value in sorted(wanted.items()):
        if name not in SIGNATURES and now.get(name) != value:
            os.setxattr(handle, name, value)


def _sync_handle(handle: int) -> None:
    """Sync the open file or folder, where its file system can do that."""
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.EOPNOTSUPP}:  # this file system has nothing to sync
            raise
