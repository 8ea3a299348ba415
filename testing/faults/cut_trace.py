"""What a program did to files, in order, from a trace that strace wrote: writes, syncs, names, and what it acknowledged."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

CALLS = (
    *("openat", "open", "creat", "write", "pwrite64", "writev", "pwritev", "pwritev2", "lseek", "ftruncate"),
    *("truncate", "fsync", "fdatasync", "rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir"),
    *("mkdirat", "rmdir", "link", "linkat", "symlink", "symlinkat", "copy_file_range", "sendfile"),
)
STRACE = (
    *("strace", "-f", "-y", "-xx", "-s", "100000000", "--seccomp-bpf", "-qq"),
    *("-e", f"trace={','.join(CALLS)}", "-e", "signal=none"),
)
Kind = Literal["write", "truncate", "open", "sync", "rename", "unlink", "mkdir", "link", "ack"]
WHOLE = re.compile(r"(\d+) +(\w+)\((.*)\) += (-?\d+)(?:<(.*?)>)?(?:\(deleted\))?(?: .*)?")
BEGUN = re.compile(r"(\d+) +(\w+)\((.*) <unfinished \.\.\.>")
RESUMED = re.compile(r"(\d+) +<\.\.\. (\w+) resumed>(.*)")
HANDLE = re.compile(r"(AT_FDCWD|-?\d+)<((?:\\x[0-9a-f]{2})*)>")
UNKNOWN = frozenset({"pwritev", "pwritev2", "symlink", "symlinkat", "copy_file_range", "sendfile"})


class Step(Struct, frozen=True, kw_only=True):
    """One thing done to a file below the watched folder, or one acknowledgement."""

    kind: Kind
    path: str = ""
    """Absolute."""
    data: bytes = b""
    offset: int = 0
    """Of a write; the size of a truncation."""
    target: str = ""
    """The new name."""
    creates: bool = False
    began: int = 0
    """Of a sync: how many steps had been done when it began."""
    told: dict[str, Any] = field(default_factory=dict)
    """What was acknowledged."""


def read_trace(path: Path, *, top: Path, acks: Path) -> tuple[Step, ...]:
    """The steps below `top`, and what was written to `acks` (a line of JSON each), in order.

    Raises:
        ValueError: something was done to a file below `top` that this module cannot follow.
    """
    return tuple(_Reader(str(top), str(acks)).read(path))


class _Reader:
    def __init__(self, top: str, acks: str) -> None:
        self._top = top
        self._acks = acks
        self._count = 0
        self._folders: dict[str, str] = {}
        """The working folder of each process, as its last call by a relative name told."""
        self._at: dict[str, int] = {}
        """Where the next plain write to a path goes."""

    def read(self, path: Path) -> Iterator[Step]:
        begun: dict[str, tuple[str, int]] = {}
        with path.open(encoding="ascii") as lines:
            for line in lines:
                text, began = line.rstrip("\n"), self._count
                if match := BEGUN.fullmatch(text):
                    begun[match[1]] = (match[3], self._count)
                    continue
                if match := RESUMED.fullmatch(text):
                    first, began = begun.pop(match[1], ("", self._count))
                    text = f"{match[1]} {match[2]}({first}{match[3]}"
                match = WHOLE.fullmatch(text)
                if match is None or match[4].startswith("-"):
                    continue
                for step in self._steps(match[1], match[2], match[3], int(match[4]), match[5] or "", began):
                    self._count += 1
                    yield step

    def _steps(
        self, process: str, call: str, words: str, result: int, opened: str, began: int
    ) -> Iterator[Step]:
        # What stands between quotes is all escapes, and may be megabytes: no pattern looks through it.
        parts = words.split('"')
        handles = [
            (number, _plain(text).decode("utf-8", "surrogateescape"))
            for number, text in HANDLE.findall('""'.join(parts[::2]))
        ]
        for number, where in handles:
            if number == "AT_FDCWD":
                self._folders[process] = where
        names = [_plain(text) for text in parts[1::2]]
        held = handles[0][1] if handles else ""
        match call:
            case "openat" | "open" | "creat":
                yield from self._open(_decoded(_plain(opened)), words)
            case "lseek":
                self._at[held] = result
            case "write" | "pwrite64" | "writev":
                yield from self._write(call, held, b"".join(names)[:result], words)
            case "ftruncate" if self._watched(held):
                yield Step(kind="truncate", path=held, offset=int(words.rpartition(",")[2]))
            case "fsync" | "fdatasync" if self._watched(held):
                yield Step(kind="sync", path=held, began=began)
            case _:
                yield from self._name(process, call, handles, [_decoded(name) for name in names], words)

    def _open(self, path: str, words: str) -> Iterator[Step]:
        if "O_WRONLY" in words or "O_RDWR" in words or "creat" in words:
            self._at[path] = -1 if "O_APPEND" in words else 0
        if not self._watched(path) or "O_TMPFILE" in words:
            return
        if "O_CREAT" in words or "O_TRUNC" in words:
            yield Step(kind="open", path=path, creates="O_CREAT" in words)
        if "O_TRUNC" in words:
            yield Step(kind="truncate", path=path)

    def _write(self, call: str, path: str, data: bytes, words: str) -> Iterator[Step]:
        if path == self._acks:
            yield Step(kind="ack", told=json.loads(data))
        if not self._watched(path):
            return
        if call == "pwrite64":
            yield Step(kind="write", path=path, data=data, offset=int(words.rpartition(",")[2]))
            return
        at = self._at.get(path, 0)
        yield Step(kind="write", path=path, data=data, offset=at)
        if at >= 0:
            self._at[path] = at + len(data)

    def _name(
        self, process: str, call: str, handles: list[tuple[str, str]], names: list[str], words: str
    ) -> Iterator[Step]:
        folder = self._folders.get(process, "/")
        folders = [where for _, where in handles] or [folder]
        first = _join(folders[0], names[0]) if names else ""
        second = _join(folders[-1], names[1]) if len(names) > 1 else ""
        if not self._watched(first) and not self._watched(second):
            return
        if call in UNKNOWN:
            raise ValueError(f"{call} is not followed: {words[:200]}")
        if call.startswith("rename"):
            self._at[second] = self._at.get(first, 0)
            yield Step(kind="rename", path=first, target=second)
        elif call.startswith("link"):
            yield Step(kind="link", path=first, target=second)
        elif call in {"unlink", "unlinkat", "rmdir"}:
            yield Step(kind="unlink", path=first)
        elif call.startswith("mkdir"):
            yield Step(kind="mkdir", path=first)
        else:
            yield Step(kind="truncate", path=first, offset=int(words.rpartition(",")[2]))

    def _watched(self, path: str) -> bool:
        return path.startswith(self._top + "/") or path == self._top


def _plain(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _join(folder: str, name: str) -> str:
    path = name if name.startswith("/") else f"{folder}/{name}"
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in {"", "."}:
            parts.append(part)
    return "/" + "/".join(parts)
