"""Finds the commits that were added to a history, and their places in the order.

`git log` walks the graph: it emits the newest commit (by date) of those it can reach, and then its parents can be
reached too. Dates may be wrong or equal, so the order cannot be derived from dates alone. But once the walk has passed
every added commit and those commits' parents, it goes on as that of the history before did. So both are followed up
to that point:

    before:  C B A        now:  F D E C B A        added: F E D, of which E's parent is B and D's is C
    now up to there: (F, D, E, C, B); from A on, both walks are the same

Where commits are gone (amended, reset, on another branch), the history is read anew: it has a bound.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from clean_room_agent.errors import GitError
from clean_room_agent.git.log import Answer, LogEntry, read_log, walk


class HistoryDelta(Struct, frozen=True, kw_only=True):
    """What was added to a history."""

    added: Mapping[str, LogEntry]
    """Merges included, by hash."""
    order: tuple[str, ...]
    """Newest first: the added commits, and known ones among them."""


def find_delta(top: Path, *, head: str, known: str, log: Answer) -> HistoryDelta | None:
    """What `head` has and `known` has not; None if it is better to read everything again.

    `log`: the commits reachable from `head` but not from `known`, with their parents.
    """
    try:
        added = {entry.hash: entry for entry in read_log(log.take())}
        if is_line(added, head=head, known=known):
            return HistoryDelta(added=added, order=tuple(added))
        parents = {parent for entry in added.values() for parent in entry.parents.split()}
        joints = {*parents, known} - added.keys()
        order = splice(walk(top, head), walk(top, known), added=added.keys(), joints=joints)
    except GitError:
        return None  # `known` is gone: the history was rewritten and its rest thrown away
    return None if order is None else HistoryDelta(added=added, order=order)


def is_line(added: Mapping[str, LogEntry], *, head: str, known: str) -> bool:
    """Whether the commits, newest first, form a single chain of parents from `head` back to `known`."""
    hashes = list(added)
    parents = [entry.parents for entry in added.values()]
    return hashes[:1] == [head] and parents == [*hashes[1:], known]


def splice(
    new: Iterator[str], old: Iterator[str], *, added: Collection[str], joints: Collection[str]
) -> tuple[str, ...] | None:
    """Follow the walk `new` until it goes on as `old`; None if they order the commits they share differently, or `old` has
    some that `new` does not reach.

    `joints`: the shared commits that are parents of added ones.
    """
    way: list[str] = []
    coming, open_joints = len(added), set(joints)
    while coming or open_joints:
        name = next(new, None)
        if name is None:
            return None
        way.append(name)
        if name in added:
            coming -= 1
        elif name != next(old, None):
            return None
        open_joints.discard(name)
    return tuple(way)
