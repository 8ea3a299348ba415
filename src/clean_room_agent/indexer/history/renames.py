"""Maps paths in past commits to current files, by following renames backwards in time.

With commits newest first, a rename `a -> b` means that older commits' `a` is what is now `b`:

    commit 3 touches c           c is c
    commit 2 renames b -> c      from here on, b is c
    commit 1 renames a -> b      from here on, a is b, so a is c
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

NO_BOUND = 1 << 62
Renames = Sequence[tuple[str, str]]
"""(old path, new path) of one commit."""


class PastPlaces(dict[str, int]):
    """Path in a past commit -> id of the current file, or a negative number: `lost[-1 - place]` is a path without one.

    Look paths up commit by commit, newest first, and call `follow` after each commit that renames files.
    """

    def __init__(self, ids: Mapping[str, int]) -> None:
        super().__init__()
        self.lost: list[str] = []
        self._ids = ids

    def __missing__(self, path: str) -> int:
        place = self._ids.get(path)
        if place is None:
            self.lost.append(path)
            place = -len(self.lost)
        self[path] = place
        return place

    def follow(self, renames: Renames) -> None:
        """From here on (that is, in older commits), treat each old path as the file of its new path."""
        self.update([(old, self[new]) for old, new in renames])


class Move(NamedTuple):
    """In commits with ids `oldest` to `newest`, what was attributed to `source` belongs to `target`.

    `target` is None if it belongs to different paths in different commits.
    """

    source: str
    target: str | None
    oldest: int
    newest: int


class Step(NamedTuple):
    """One commit on the way back: whether the old history contains it, and its id if it does."""

    in_old: bool
    id: int | None
    renames: Renames


def find_moves(steps: Iterable[Step]) -> list[Move]:
    """Find what must be attributed to other paths when renames are added.

    `steps`: newest first; a commit that both histories share appears once.
    """
    then: dict[str, str] = {}
    now: dict[str, str] = {}
    moves: list[Move] = []
    newest = NO_BOUND
    last: int | None = None
    for step in steps:
        last = last if step.id is None else step.id
        if not step.renames:
            continue
        if last is not None:
            moves += _differences(then, now, last, newest)
            newest, last = last - 1, None
        for led in (then, now) if step.in_old else (now,):
            led.update([(old, led.get(new, new)) for old, new in step.renames])
    return moves + _differences(then, now, 0, newest)


def _differences(then: Mapping[str, str], now: Mapping[str, str], oldest: int, newest: int) -> list[Move]:
    changed = {path for path in {*then, *now} if then.get(path, path) != now.get(path, path)}
    sources = sorted({then.get(path, path) for path in changed})
    origins = {source: set() if source in then else {source} for source in sources}
    for path, source in then.items():
        if source in origins:
            origins[source].add(path)
    moves = []
    for source in sources:
        targets = {now.get(path, path) for path in origins[source]}
        target = targets.pop() if len(targets) == 1 else None
        if target != source:
            moves.append(Move(source, target, oldest, newest))
    return moves
