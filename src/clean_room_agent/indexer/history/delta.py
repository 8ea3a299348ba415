"""Compares two histories: commits added, commits removed, and where they stand in the order.

The order of `git log` is a walk: of the commits at hand the newest by date comes next, its parents are at hand then.
Dates lie and tie, so the order cannot be computed from dates alone; but two walks go on alike from where both have
passed all that they do not share, and the parents of these, and the rest alike. They are followed up to there.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from clean_room_agent.errors import GitError
from clean_room_agent.git.log import Answer, LogEntry, parents_between, read_log, walk

MANY = 500
"""Beyond so many commits that go, reading everything anew is as quick."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryDelta:
    """The way from one history to another; both orders end where they become the same."""

    added: Mapping[str, LogEntry]
    """The commits that come, merges included, by hash."""
    gone: frozenset[str]
    """The commits that go, merges included."""
    new: tuple[str, ...]
    """Newest first: the commits that come, and shared ones among them."""
    old: tuple[str, ...]
    """Newest first: the commits that go, and the same shared ones in the same order."""


def find_delta(top: Path, *, head: str, known: str, log: Answer) -> HistoryDelta | None:
    """The way from `known` to `head`; None where everything is better read anew.

    `log`: what `head` reaches and `known` does not, with parents.
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
    """The way if `lost` are the commits that go, with their parents."""
    parents = {parent for entry in added.values() for parent in entry.parents.split()}
    parents.update(parent for names in lost.values() for parent in names)
    joints = parents - added.keys() - lost.keys()
    if not lost:
        joints.add(known)  # reached from `head`, or else something goes
    ways = splice(walk(top, head), walk(top, known), added=added.keys(), gone=lost.keys(), joints=joints)
    return None if ways is None else HistoryDelta(added=added, gone=frozenset(lost), new=ways[0], old=ways[1])


def is_line(added: Mapping[str, LogEntry], *, head: str, known: str) -> bool:
    """Whether the commits, newest first, are one line of single parents from `known` to `head`."""
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
    """Both walks up to where they go on alike; None where they do not share their commits in the same order.

    `joints`: the shared commits that are parents of those that come or go.
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
    """The next commit that is not one's own, which ends `way` then, and how many own ones came before."""
    passed = 0
    for name in walked:
        way.append(name)
        if name not in own:
            return name, passed
        passed += 1
    return None, passed
