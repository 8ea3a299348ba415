"""Temporary folders, each locked by the process that uses it, so that those of killed processes can be found."""

import contextlib
import fcntl
import os
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from clean_room_agent.tree_removal import remove_tree

KINDS = ("apply", "bootstrap", "checkout", "commit", "escapes", "index")
NAME = re.compile(rf"cra-(?:{'|'.join(KINDS)})-[A-Za-z0-9_]{{8}}\Z")
FRESH = 3600.0
"""Seconds in which an unlocked folder is let be: it may be about to be locked."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def temporary_folder(kind: str) -> Iterator[Path]:
    """A new, private folder, removed at the end; while this process lives, `abandoned_folders` does not name it."""
    with tempfile.TemporaryDirectory(prefix=f"cra-{kind}-") as name, working_in(Path(name)):
        yield Path(name)


@contextlib.contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Meanwhile `is_free` says no of the folder."""
    handle = os.open(folder, FOLDER)
    try:
        with contextlib.suppress(OSError):  # a file system without locks: its age protects the folder
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def abandoned_folders(now: float | None = None) -> tuple[Path, ...]:
    """This user's temporary folders that no process works in, sorted; those of the last hour are left out."""
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
    """Delete the folder unless a process uses it; whether it is gone.

    Raises:
        OSError: something in it cannot be removed.
    """
    if not is_free(folder):
        return False
    remove_tree(folder)
    return True


def is_free(folder: Path) -> bool:
    """Whether the folder is there, and no process works in it that says so by `working_in`."""
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
