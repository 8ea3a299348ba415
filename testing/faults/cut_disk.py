"""A disk that forgets: what was not synced when the power went may be there, be missing, or be there in parts.

Harsher than most file systems: of a file's writes since its last sync any may survive, each whole or by sectors; of a
folder's changes of names since its own last sync, only some beginning does, and syncing a file does not sync its name.
"""

import random
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from testing.faults.cut_trace import Step

SECTORS = (512, 4096)


class _Change(Struct, kw_only=True):
    """A write (`data`) or a truncation (None) that is not synced, with the step that made it."""

    step: int
    offset: int
    data: bytes | None


class _File(Struct, kw_only=True, eq=False):
    durable: bytearray = field(default_factory=bytearray)
    pending: list[_Change] = field(default_factory=list)
    size: int = 0
    """As the program sees it."""


_Names = dict[str, "_File | None"]
"""Path -> file; None: a folder."""


class _Renaming(Struct, kw_only=True):
    """Names of one folder that changed at once, and the step that changed them; "" as value: the name is gone."""

    step: int
    changes: dict[str, "_File | str | None"]


class Disk:
    """The files below one folder, as a program sees them and as the disk would have them."""

    def __init__(self, top: Path) -> None:
        """What stands below `top` now is on the disk."""
        self._top = str(top)
        self._names: _Names = {}
        for path in sorted(top.rglob("*")):
            if path.is_dir() and not path.is_symlink():
                self._names[str(path)] = None
            elif path.is_file():
                data = path.read_bytes()
                self._names[str(path)] = _File(durable=bytearray(data), size=len(data))
        self._durable: _Names = dict(self._names)
        self._pending: dict[str, list[_Renaming]] = {}
        self._steps = 0

    def do(self, step: Step) -> None:
        """The program has done `step`."""
        self._steps += 1
        match step.kind:
            case "open":
                if step.path not in self._names and step.creates:
                    self._rename(step.path, {step.path: _File()})
            case "mkdir":
                self._rename(step.path, {step.path: None})
            case "unlink":
                self._rename(step.path, {step.path: ""})
            case "link":
                self._rename(step.target, {step.target: self._names[step.path]})
            case "rename":
                self._move(step)
            case "write" | "truncate":
                self._change(step)
            case "sync":
                self._sync(step)
            case "ack":
                pass

    def seen(self) -> Mapping[str, bytes]:
        """Every file's content as the program sees it, by path."""
        return {path: _content(file, file.pending) for path, file in self._names.items() if file is not None}

    def after_cut(self, rng: random.Random) -> Mapping[str, bytes | None]:
        """What may be on the disk if the power goes now: path -> content; None: a folder."""
        names = dict(self._durable)
        for _, waiting in sorted(self._pending.items()):
            for renaming in waiting[: rng.choice((0, len(waiting), rng.randint(0, len(waiting))))]:
                _apply(names, renaming)
        kept = {path: file for path, file in sorted(names.items()) if self._reachable(path, names)}
        contents: dict[int, bytes] = {}
        for file in kept.values():
            if file is not None and id(file) not in contents:
                contents[id(file)] = _content(file, _survivors(file.pending, rng))
        return {path: None if file is None else contents[id(file)] for path, file in kept.items()}

    def _reachable(self, path: str, names: _Names) -> bool:
        folder = path.rpartition("/")[0]
        return folder == self._top or (names.get(folder, "") is None and self._reachable(folder, names))

    def _rename(self, path: str, changes: dict[str, "_File | str | None"]) -> None:
        renaming = _Renaming(step=self._steps, changes=changes)
        _apply(self._names, renaming)
        self._pending.setdefault(path.rpartition("/")[0], []).append(renaming)

    def _move(self, step: Step) -> None:
        if step.path not in self._names:  # from outside: a new file, whose content is not known
            raise ValueError(f"{step.path} was renamed into the watched folder")
        changes: dict[str, _File | str | None] = {step.path: "", step.target: self._names[step.path]}
        below = [path for path in self._names if path.startswith(f"{step.path}/")]
        for path in below:
            changes |= {path: "", step.target + path[len(step.path) :]: self._names[path]}
        self._rename(step.target, changes)

    def _change(self, step: Step) -> None:
        file = self._names.get(step.path)
        if file is None:
            return  # a file whose name is gone already: it goes with the power
        offset = file.size if step.offset < 0 else step.offset
        data = step.data if step.kind == "write" else None
        file.size = max(file.size, offset + len(data)) if data is not None else offset
        file.pending.append(_Change(step=self._steps, offset=offset, data=data))

    def _sync(self, step: Step) -> None:
        if step.path == self._top or self._names.get(step.path, "") is None:
            waiting = self._pending.get(step.path, [])
            for renaming in [one for one in waiting if one.step <= step.began]:
                _apply(self._durable, renaming)
                waiting.remove(renaming)
            return
        file = self._names.get(step.path)
        if file is not None:
            done = [change for change in file.pending if change.step <= step.began]
            file.durable = bytearray(_content(file, done))
            file.pending = file.pending[len(done) :]


def _apply(names: _Names, renaming: _Renaming) -> None:
    for path, file in renaming.changes.items():
        if isinstance(file, str):
            names.pop(path, None)
        else:
            names[path] = file


def _content(file: _File, changes: list[_Change]) -> bytes:
    content = bytearray(file.durable)
    for change in changes:
        if change.data is None:
            del content[change.offset :]
            content.extend(bytes(change.offset - len(content)))
        else:
            content.extend(bytes(max(0, change.offset - len(content))))
            content[change.offset : change.offset + len(change.data)] = change.data
    return bytes(content)


def _survivors(pending: list[_Change], rng: random.Random) -> list[_Change]:
    """Some of the changes, in their order: none, all, the first ones, any, or any sectors of any."""
    way = rng.choice(("none", "all", "first", "any", "torn", "torn"))
    if way in {"none", "all"}:
        return pending if way == "all" else []
    if way == "first":
        return pending[: rng.randint(0, len(pending))]
    if way == "any":
        return [change for change in pending if rng.random() < 0.5]
    return [
        part for change in pending for part in _sectors(change, rng.choice(SECTORS)) if rng.random() < 0.6
    ]


def _sectors(change: _Change, size: int) -> list[_Change]:
    if change.data is None:
        return [change]
    parts, at = [], 0
    while at < len(change.data):
        length = size - (change.offset + at) % size
        data = change.data[at : at + length]
        parts.append(_Change(step=change.step, offset=change.offset + at, data=data))
        at += length
    return parts
