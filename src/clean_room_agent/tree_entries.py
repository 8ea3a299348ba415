"""What is at a path of the user's tree: its state and its attributes; and writing a file that takes another's place."""

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct, structs

from clean_room_agent import safe_open

ABSENT = ""
WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
NO_LINKS = frozenset({errno.EPERM, errno.EACCES, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV})
"""Errors that mean that a file cannot get a second name here."""
SIGNATURES = frozenset({"security.ima", "security.evm"})
"""Extended attributes that are about the old content."""


class Attributes(Struct, frozen=True, kw_only=True):
    """Permission bits and owner of a file or folder."""

    mode: int
    owner: int
    group: int

    def give(self, handle: int) -> None:
        """Give them to what is open; the owner only where it is another one.

        A file gets no setuid and setgid bits, as when it is written by anybody but root.
        """
        now = os.fstat(handle)
        if (now.st_uid, now.st_gid) != (self.owner, self.group):
            os.fchown(handle, self.owner, self.group)
        os.fchmod(handle, self.mode & (0o7777 if stat.S_ISDIR(now.st_mode) else 0o1777))


NO_ATTRIBUTES: Mapping[str, Attributes] = MappingProxyType({})


class NewFile(Struct, frozen=True, kw_only=True):
    """What a path is to become."""

    data: bytes
    """The content; the target of a link."""
    link: bool = False
    executable: bool | None = None
    """None: as the file that it replaces."""
    attributes: Attributes | None = None
    """Of a file that replaces none; None: as any new file here."""


def state_of(top: Path, path: str) -> str:
    """What is at the path: "" for nothing; else its kind, and for a file or link a hash of the content or target.

    Raises:
        OSError: it cannot be read, or the way to it is a link.
    """
    try:
        with safe_open.open_parent(top, path) as (folder, name):
            return entry_state(folder, name)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT


def entry_state(folder: int, name: str) -> str:
    """The same of `name` in an open folder."""
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


def state_of_new(file: NewFile) -> str:
    """The state of a path that has become this."""
    return f"{'link' if file.link else 'file'}:{hashlib.sha256(file.data).hexdigest()}"


def folders_of(path: str) -> Iterator[str]:
    """The folders that contain the path, inner ones first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def attributes_of(top: Path, path: str) -> Attributes | None:
    """The attributes of the file or folder at the path; None if there is neither."""
    try:
        about = safe_open.status(top, path)
    except OSError:
        return None
    return None if stat.S_ISLNK(about.st_mode) else _attributes(about)


def _attributes(about: os.stat_result) -> Attributes:
    return Attributes(mode=stat.S_IMODE(about.st_mode), owner=about.st_uid, group=about.st_gid)


def write_file(folder: int, name: str, file: NewFile, *, like: str | None) -> None:
    """Create and sync a file, with the mode, owner and attributes of the file `like`."""
    if file.link:
        os.symlink(os.fsdecode(file.data), name, dir_fd=folder)
        return
    # Without another file's, it gets the mode that any program would give it here; else, it is closed until it has that.
    own = like is not None or file.attributes is not None
    mode = 0o600 if own else 0o777 if file.executable else 0o666
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
        elif file.attributes is not None:
            file.attributes.give(handle)
        sync_handle(handle)
    finally:
        os.close(handle)


def _carry_over(original: int, handle: int, *, executable: bool | None) -> None:
    """Give the file the owner, mode and extended attributes of the other; whether it is executable may change."""
    attributes = _attributes(os.fstat(original))
    if executable is not None:
        readable = attributes.mode >> 2 & 0o111
        mode = attributes.mode | readable if executable else attributes.mode & ~0o111
        attributes = structs.replace(attributes, mode=mode)
    if sys.platform == "linux":
        _carry_extended(original, handle)
    attributes.give(handle)


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


def name_twice(folder: int, name: str, second: str) -> None:
    """Let `second` name the same file or link; where that is impossible, a copy of it."""
    try:
        os.link(name, second, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
    else:
        return
    if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        os.symlink(os.readlink(name, dir_fd=folder), second, dir_fd=folder)
        return
    with os.fdopen(os.open(name, safe_open.READ, dir_fd=folder), "rb") as file:
        about = os.fstat(file.fileno())
        write_file(folder, second, NewFile(data=file.read()), like=name)
    os.utime(second, ns=(about.st_atime_ns, about.st_mtime_ns), dir_fd=folder, follow_symlinks=False)


def exists_in(folder: int, name: str) -> bool:
    """Whether the open folder has the name."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def sync_handle(handle: int) -> None:
    """Sync the open file or folder, where its file system can do that."""
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.EOPNOTSUPP}:  # this file system has nothing to sync
            raise
