"""Opens untrusted relative paths below a folder: never through a link, never outside, even if something is swapped
meanwhile. And files by a path that a user named: never waiting for what is no file.

A path is looked up once, from an open handle of the folder, one name after the other; the checks are made on the opened file. Links, folders, FIFOs, sockets and devices are not read.
"""

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Without waiting for a FIFO's other end, and without making a terminal the controlling one."""
FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_PATH if sys.platform == "linux" else 0)
SYNCABLE = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
OPEN_ALREADY = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Names of what this process was given open: by `<(command)` in a shell, for one."""
KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
}
NOT_A_FILE = frozenset({errno.ELOOP, errno.EXDEV, errno.ENOTDIR, errno.EINVAL, errno.ENXIO})
"""Errors that mean that there is something, at the path or on the way, that is not read."""
CHUNK = 1 << 20
_MADE = "cra-new-"


def open_file(root: Path, path: str) -> BufferedReader:
    """The regular file at `path` (relative to `root`, forward slashes), open for reading; the caller closes it.

    Raises:
        OSError: there is none, it is something else, or the way to it is a link or leads outside `root`.
    """
    with _open_root(root) as top:
        handle = open_beneath(top, path, READ)
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return os.fdopen(handle, "rb")


def open_named(path: Path) -> BufferedReader:
    """The file at a path that somebody named, open for reading; links are followed. What is no regular file is only read
    if this process has it open already: nothing may ever come from any other FIFO or device.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    try:
        handle = os.open(path, READ & ~os.O_NOFOLLOW)
    except OSError as exc:
        if exc.errno == errno.ENXIO:
            raise OSError(errno.EINVAL, "it is a socket, not a file", os.fspath(path)) from exc
        raise
    kind = stat.S_IFMT(os.fstat(handle).st_mode)
    if kind != stat.S_IFREG:
        if kind == stat.S_IFDIR or not os.fspath(path).startswith(OPEN_ALREADY):
            os.close(handle)
            raise OSError(errno.EINVAL, f"it is {KINDS[kind]}, not a file", os.fspath(path))
        os.set_blocking(handle, True)
    return os.fdopen(handle, "rb")


def read_bytes(root: Path, path: str, *, max_bytes: int | None = None) -> bytes:
    """The file's bytes, at most the first `max_bytes`.

    Raises:
        OSError: as `open_file`.
    """
    with open_file(root, path) as file:
        return file.read() if max_bytes is None else file.read(max_bytes)


def read_or_none(root: Path, path: str, *, max_bytes: int | None = None) -> bytes | None:
    """As `read_bytes`; None if there is no such regular file below real folders that can be read."""
    try:
        return read_bytes(root, path, max_bytes=max_bytes)
    except OSError:
        return None


def status(root: Path, path: str) -> os.stat_result:
    """The status of `path`, without following a link.

    Raises:
        OSError: there is nothing, or the way to it is a link or leads outside `root`.
    """
    with _open_containing_folder(root, path) as (folder, name):
        return os.stat(name, dir_fd=folder, follow_symlinks=False)


def is_file(root: Path, path: str) -> bool:
    """Whether there is a regular file at the path below `root`, without a link on the way."""
    try:
        return stat.S_ISREG(status(root, path).st_mode)
    except OSError:
        return False


def is_empty_folder(root: Path, path: str) -> bool:
    """Whether there is an empty folder at the path below `root`, without a link on the way."""
    with contextlib.suppress(OSError), _open_root(root) as top:
        handle = open_beneath(top, path, SYNCABLE)
        try:
            with os.scandir(handle) as entries:
                return next(entries, None) is None
        finally:
            os.close(handle)
    return False


def write_bytes(root: Path, path: str, data: bytes, *, mode: int = 0o644) -> None:
    """Write `data` to the file, creating missing folders.

    It is a new file that replaces the old one, so other names (hard links) keep the old content.

    Raises:
        OSError: there is a folder, the way to it is a link or leads outside `root`, or it cannot be written.
    """
    with (
        _open_containing_folder(root, path, make=True) as (folder, name),
        _new_file(folder, name, mode) as handle,
    ):
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]


def copy_file(source: Path, target: Path, path: str) -> None:
    """Copy the file at `path` from below `source` to below `target`, with its permissions and time.

    Raises:
        OSError: as `open_file` and `write_bytes`.
    """
    import shutil  # noqa: PLC0415 - loads compression modules

    with open_file(source, path) as file, _open_containing_folder(target, path, make=True) as (folder, name):
        found = os.fstat(file.fileno())
        with _new_file(folder, name, stat.S_IMODE(found.st_mode) & 0o777) as handle:
            with os.fdopen(handle, "wb", closefd=False) as copy:
                shutil.copyfileobj(file, copy, CHUNK)
            os.utime(handle, ns=(found.st_atime_ns, found.st_mtime_ns))


def make_link(root: Path, path: str, goal: Path) -> None:
    """Create a symbolic link to `goal` at `path`, and missing folders on the way.

    Raises:
        OSError: there is something already, or the way to it is a link or leads outside `root`.
    """
    with _open_containing_folder(root, path, make=True) as (folder, name):
        os.symlink(goal, name, dir_fd=folder)


@contextlib.contextmanager
def open_parent(root: Path, path: str) -> Iterator[tuple[int, str]]:
    """The existing folder of `path`, open so that it can be synced, and the last name of `path`.

    Raises:
        OSError: there is no such folder, or the way to it is a link or leads outside `root`.
    """
    with _open_containing_folder(root, path) as (parent, name):
        folder = os.open(".", SYNCABLE, dir_fd=parent)
        try:
            yield folder, name
        finally:
            os.close(folder)


@contextlib.contextmanager
def hold_parent(root: Path, path: str) -> Iterator[Path]:
    """A name for the folder of `path`, which is created if missing, that refers to this folder even if something is
    moved or swapped.

    Only while the context lasts, and on Linux; other processes of the user can use it, too.

    Raises:
        OSError: the way to it is a link or leads outside `root`.
    """
    with _open_containing_folder(root, path, make=True) as (folder, _):
        yield Path(f"/proc/{os.getpid()}/fd/{folder}")


def open_beneath(top: int, path: str, flags: int) -> int:
    """Open `path` below the open folder `top`, folder by folder.

    Raises:
        OSError: there is nothing, a link is at the path or on the way, or the path leads outside.
    """
    *folders, name = _split_path(path)
    with contextlib.ExitStack() as stack:
        for folder in folders:
            top = os.open(folder, FOLDER, dir_fd=top)
            stack.callback(os.close, top)
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=top)


def _split_path(path: str) -> list[str]:
    """The names in `path`; raises for names that could lead outside, or that no file system allows."""
    names = path.split("/")
    bad = not names or any(name in {"", ".", ".."} for name in names) or "\0" in path
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        bad = True
    if bad:
        raise OSError(errno.EXDEV, "not a path inside the folder", path)
    return names


@contextlib.contextmanager
def _open_root(root: Path) -> Iterator[int]:
    """The open folder that paths are relative to; it is trusted, so it may be reached through links."""
    handle = os.open(root, FOLDER & ~os.O_NOFOLLOW)
    try:
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _open_containing_folder(root: Path, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """The folder that contains `path`, open, and the last name of `path`."""
    *folders, name = _split_path(path)
    with contextlib.ExitStack() as stack:
        top = stack.enter_context(_open_root(root))
        for folder in folders:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder, dir_fd=top)
            top = os.open(folder, FOLDER, dir_fd=top)
            stack.callback(os.close, top)
        yield top, name


@contextlib.contextmanager
def _new_file(folder: int, name: str, mode: int) -> Iterator[int]:
    """A new file that gets the name `name` if the block succeeds, and disappears otherwise."""
    made = _MADE + os.urandom(8).hex()
    handle = os.open(
        made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder
    )
    try:
        yield handle
        os.fchmod(handle, mode)
        os.rename(made, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(made, dir_fd=folder)
        raise
    finally:
        os.close(handle)
