"""Compares two histories: commits added, commits removed, and their places in the order.

`git log` walks the graph: it emits the newest commit (by date) of those it can reach, and then its parents can be
reached too. Dates may be wrong or equal, so the order cannot be derived from dates alone. But once both walks have
passed every commit that they do not share, and those commits' parents, they continue identically. So both are
followed up to that point:

    old:  D C B A        new:  F D E C B A        added: F E, whose parents are D and C
    old == (D, C), new == (F, D, E, C); from B on, both walks are the same
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from clean_room_agent.errors import GitError
from clean_room_agent.git.log import Answer, LogEntry, parents_between, read_log, walk

MANY = 500
"""If more commits than this are removed, reading the whole history again is as quick."""


class HistoryDelta(Struct, frozen=True, kw_only=True):
    """How to get from one history to another; both orders stop where the walks become identical."""

    added: Mapping[str, LogEntry]
    """The commits that come, merges included, by hash."""
    gone: frozenset[str]
    """The commits that go, merges included."""
    new: tuple[str, ...]
    """Newest first: the commits that come, and shared ones among them."""
    old: tuple[str, ...]
    """Newest first: the commits that go, and the same shared ones in the same order."""


def find_delta(top: Path, *, head: str, known: str, log: Answer) -> HistoryDelta | None:
    """Compare `known` with `head`; None if it is better to read everything again.

    `log`: the commits reachable from `head` but not from `known`, with their parents.
    """
    try:
        added = {entry.hash: entry for entry in read_log(log.take())}
        if is_line(added, head=head, known=known):
            return HistoryDelta(added=added, gone=frozenset(), new=tuple(added), old=())
        delta = _splice(top, head, known, added, {})
        if delta is None:
            lost = parents_between(top, known, head)
            delta = _splice(top, head, known, added, lost) if 0 < len(lost) <= MANY else None
    except GitError:
        return None  # `known` is gone: the history was rewritten and its rest thrown away
    return delta


def _splice(
    top: Path, head: str, known: str, added: Mapping[str, LogEntry], lost: Mapping[str, tuple[str, ...]]
) -> HistoryDelta | None:
    """Compare the walks, given the removed commits (`lost`, with their parents)."""
    parents = {parent for entry in added.values() for parent in entry.parents.split()}
    parents.update(parent for names in lost.values() for parent in names)
    joints = parents - added.keys() - lost.keys()
    if not lost:
        joints.add(known)  # reached from `head`, or else something goes
    ways = splice(walk(top, head), walk(top, known), added=added.keys(), gone=lost.keys(), joints=joints)
    return None if ways is None else HistoryDelta(added=added, gone=frozenset(lost), new=ways[0], old=ways[1])


def is_line(added: Mapping[str, LogEntry], *, head: str, known: str) -> bool:
    """Whether the commits, newest first, form a single chain of parents from `head` back to `known`."""
    hashes = list(added)
    parents = [entry.parents for entry in added.values()]
    return hashes[:1] == [head] and parents == [*hashes[1:], known]


def splice(
    new: Iterator[str],
    old: Iterator[str],
    *,
    added: Collection[str],
    gone: Collection[str],
    joints: Collection[str],
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Follow both walks until they become identical; None if they order the commits they share differently.

    `joints`: the shared commits that are parents of added or removed ones.
    """
    new_way: list[str] = []
    old_way: list[str] = []
    coming, going, open_joints = len(added), len(gone), set(joints)
    while coming or going or open_joints:
        shared, passed = _to_shared(new, added, new_way)
        coming -= passed
        shared_too, passed = _to_shared(old, gone, old_way)
        going -= passed
        if shared != shared_too:
            return None
        if shared is None:
            break
        open_joints.discard(shared)
    return None if coming or going or open_joints else (tuple(new_way), tuple(old_way))


def _to_shared(walked: Iterator[str], own: Collection[str], way: list[str]) -> tuple[str | None, int]:
    """Append commits to `way` up to the next one not in `own`; return it, and how many came before it."""
    passed = 0
    for name in walked:
        way.append(name)
        if name not in own:
            return name, passed
        passed += 1
    return None, passed
