"""Compares the files of the working tree with the index: present, possibly changed, gone."""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from clean_room_agent.db.curated.files import Stamp
from clean_room_agent.paths import is_secret_name
from clean_room_agent.workspace import FOLDER

RACY_NS = 2_000_000_000
"""A file written within the clock's and the file system's coarseness before the last scan may have changed after it."""


class Scan(Struct, frozen=True, kw_only=True):
    """How the working tree differs from the index; each list is sorted."""

    present: tuple[str, ...]
    """All files that belong into the index, as far as that shows unread."""
    suspects: tuple[str, ...]
    """New to the index, or not surely as they were: to be read."""
    gone: tuple[str, ...]
    """In the index, and not present."""
    sizes: Mapping[str, int]
    """Bytes of each present file, by path, in order."""
    left_out: Mapping[str, str]
    """Why a regular file with no secret's name is not present, by path, in order."""


def scan(
    root: Path, paths: Iterable[str], known: Mapping[str, Stamp], *, scanned_at: int, max_bytes: int
) -> Scan:
    """Compare the files that belong in the index with those it knows: what it holds or has decided not to hold, by path. `scanned_at`:
    when it was last updated, in nanoseconds since 1970; 0 for never.
    """
    sizes: dict[str, int] = {}
    left_out: dict[str, str] = {}
    suspects: list[str] = []
    base, racy_from = f"{root}/", scanned_at - RACY_NS
    for path in sorted(set(paths)):
        stamp = known.get(path)
        if stamp is None and not _may_belong(path):
            continue
        try:
            status = os.lstat(base + path)
        except OSError:
            continue
        size, written = status.st_size, status.st_mtime_ns
        if not stat.S_ISREG(status.st_mode):
            continue
        if not _is_utf8(path):
            left_out[path] = "its name is not UTF-8"
        elif size > max_bytes:
            left_out[path] = f"{size:,} bytes are more than [index] max_file_bytes"
        else:
            sizes[path] = size
            if written >= racy_from or (size, written, status.st_ino) != stamp:
                suspects.append(path)
    gone = sorted(known.keys() - sizes.keys())
    return Scan(
        present=tuple(sizes), suspects=tuple(suspects), gone=tuple(gone), sizes=sizes, left_out=left_out
    )


def _may_belong(path: str) -> bool:
    """Whether the name is neither a secret's nor in our own folder; of a known file this was asked before."""
    return not (is_secret_name(path) or path.startswith(f"{FOLDER}/"))


def _is_utf8(path: str) -> bool:
    return path.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in path)
