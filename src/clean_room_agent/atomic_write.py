"""Writes files so that a crash or a power cut leaves the old content or the new, never half of it."""

import contextlib
import os
import secrets
from pathlib import Path

from clean_room_agent.errors import UsageError

MAX_GIVEN_BYTES = 64_000_000
"""The largest file named by the user that is read: a plan, a manifest."""


def atomic_write(path: Path, data: str | bytes, *, private: bool = False) -> None:
    """Replace the file's content by `data`, synced with its name; until then it has its old content.

    Anything but a regular file (a terminal, a pipe) is written to directly. A link stays, and its target is replaced.

    Args:
        path: its folder must exist.
        data: text is written as UTF-8.
        private: only the user may read it (0600); otherwise a new file gets its mode from the umask, and an old one
            keeps its own.

    Raises:
        UsageError: it cannot be written; nothing is left of the attempt.
    """
    content = data.encode() if isinstance(data, str) else data
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        place = path.resolve()
        old_mode = place.stat().st_mode & 0o777 if place.exists() else None
        _replace(place, content, mode=0o600 if private else old_mode, wanted=0o600 if private else 0o666)
    except OSError as exc:
        raise UsageError(
            f"cannot write {path}: {exc.strerror or exc}", hint="free some space, or name another place"
        ) from exc


def sync_file(path: Path) -> None:
    """Sync the file to disk, so that it survives a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Sync the folder to disk, so that the names in it survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _replace(place: Path, content: bytes, *, mode: int | None, wanted: int) -> None:
    temporary = place.with_name(f".{place.name[:100]}.{secrets.token_hex(4)}.part")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, wanted)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 - a handle, not a path
            if mode is not None:
                os.fchmod(handle, mode)
            file.write(content)
            file.flush()
            os.fsync(handle)
        temporary.replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(place.parent)


def read_given(path: Path) -> str:
    """The text of a file that the user named.

    Raises:
        OSError: it cannot be read.
        ValueError: it is too large, or not UTF-8.
    """
    with path.open("rb") as file:
        data = file.read(MAX_GIVEN_BYTES + 1)
    if len(data) > MAX_GIVEN_BYTES:
        raise ValueError(f"it has more than {MAX_GIVEN_BYTES:,} bytes")
    return data.decode("utf-8")
