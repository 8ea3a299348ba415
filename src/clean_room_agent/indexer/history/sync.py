"""Updates the indexed history in place; the result is the same as reading it from scratch.

*Which commits were added, and where.* `git log` walks the graph: it emits the newest commit (by date) of those it can reach,
and then its parents can be reached too. Dates may be wrong or equal, so the order cannot be derived from dates alone. But
once the walk has passed every added commit and those commits' parents, it goes on as that of the history before did. So
both are followed up to that point:

    before:  C B A        now:  F D E C B A        added: F E D, of which E's parent is B and D's is C
    now up to there: (F, D, E, C, B); from A on, both walks are the same

Where commits are gone (amended, reset, on another branch), the history is read anew: it has a bound.

*What they renamed.* A rename `a -> b` means that older commits' `a` is what is now `b` (see `PastPlaces`), so that commits
that are in the index already may belong to other files now: `find_moves` says which.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from clean_room_agent.db.curated import history
from clean_room_agent.db.curated.files import count_commits
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import GitError
from clean_room_agent.git.log import Answer, LogEntry, read_log, walk
from clean_room_agent.indexer.history.rows import (
    GAP,
    SEARCHED_COMMITS,
    PastPlaces,
    Renames,
    Scope,
    Touches,
    insert_commits,
    insert_terms,
)


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


NO_BOUND = 1 << 62


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
            moves += _path_moves(then, now, last, newest)
            newest, last = last - 1, None
        for led in (then, now) if step.in_old else (now,):
            led.update([(old, led.get(new, new)) for old, new in step.renames])
    return moves + _path_moves(then, now, 0, newest)


def _path_moves(then: Mapping[str, str], now: Mapping[str, str], oldest: int, newest: int) -> list[Move]:
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


MANY = 2000
"""Beyond so many commits to be read again, reading everything is as quick."""


class HistorySync:
    """One update of the stored history.

    `_renewed` collects the files whose co-change counts must be computed again, because they cannot be adjusted by adding
    and subtracting.
    """

    def __init__(
        self, conn: Connection, scope: Scope, read_commits: Callable[[Sequence[str]], Sequence[LogEntry]]
    ) -> None:
        """`read_commits` asks git about just these commits."""
        self._conn = conn
        self._scope = scope
        self._read_commits = read_commits
        self._renewed: set[int] = set()

    def find_lost(self) -> None:
        """Attribute commits of paths without a file to files that now have these paths."""
        for path in history.list_lost_paths(self._conn):
            file_id = self._scope.ids.get(path)
            if file_id is not None:
                commits = history.take_past(self._conn, path, None, oldest=0, newest=NO_BOUND)
                history.put_past(self._conn, path, file_id, commits)
                history.forget_lost_path(self._conn, path)
                self._renewed.add(file_id)

    def follow(self, delta: HistoryDelta) -> bool:
        """Apply the delta to the stored commits.

        Returns False if the stored rows do not suffice; the history must then be read from scratch.
        """
        full = count_commits(self._conn) >= self._scope.bound
        shared = history.list_ids(self._conn, [name for name in delta.order if name not in delta.added])
        renames = history.list_renames(self._conn, min(shared.values())) if shared else {}
        unclear = self._move_commits(find_moves(_history_steps(delta, shared, renames)))
        if len(unclear) > MANY:
            return False
        numbers = self._choose_ids(delta, shared, full=full)
        if numbers is None:
            return False
        self._add_commits(delta, numbers, shared, renames)
        self._place_again(unclear)
        surplus = count_commits(self._conn) - self._scope.bound
        if surplus > 0:
            self._delete_oldest(surplus)
        return True

    def settle_pairs(self) -> None:
        """Recompute the co-change counts of files for which adjusting them was not enough."""
        for file_id in sorted(self._renewed):
            history.renew_pairs(self._conn, file_id, self._scope.pair_bound)

    def settle_terms(self) -> None:
        """Keep search terms for the newest commits only."""
        oldest = history.id_at(self._conn, SEARCHED_COMMITS - 1) or 0
        history.drop_terms(self._conn, oldest)

    def _move_commits(self, moves: Sequence[Move]) -> set[int]:
        """Attribute commits to other paths; return the commits for which git must be asked again."""
        ids = self._scope.ids
        unclear: set[int] = set()
        taken: list[tuple[str, list[int]]] = []
        for move in moves:
            source = ids.get(move.source)
            commits = history.take_past(
                self._conn, move.source, source, oldest=move.oldest, newest=move.newest
            )
            if commits and source is not None:
                self._renewed.add(source)
            if move.target is None:
                unclear.update(commits)
            else:
                taken.append((move.target, commits))
        for path, commits in taken:
            target = ids.get(path)
            history.put_past(self._conn, path, target, commits)
            if commits and target is not None:
                self._renewed.add(target)
        return unclear

    def _place_again(self, unclear: Collection[int]) -> None:
        """Read from git what these commits touched."""
        if not unclear:
            return
        hashes = history.list_hashes(self._conn, sorted(unclear))
        entries = {entry.hash: entry for entry in self._read_commits(list(hashes))}
        renames = history.list_renames(self._conn, 0)
        places = PastPlaces(self._scope.ids)
        touches = Touches(places)
        again = {number: entries[name] for name, number in hashes.items()}
        for number in sorted({*renames, *again}, reverse=True):
            if number in again:
                touches.add(number, again[number])
            else:
                places.follow(renames[number])
        touches.store(self._conn)
        self._renewed.update(touches.by_file)

    def _choose_ids(
        self, delta: HistoryDelta, shared: Mapping[str, int], *, full: bool
    ) -> dict[str, int] | None:
        """Choose ids between those of the neighbours for the added commits; None if the gaps are too small."""
        numbers: dict[str, int] = {}
        newer: int | None = None
        run: list[str] = []
        for name in delta.order:
            entry = delta.added.get(name)
            if entry is not None and not entry.is_merge:
                run.append(name)
            elif name in shared:
                if not _spread_ids(run, shared[name], newer, numbers):
                    return None
                newer, run = shared[name], []
        if not run:
            return numbers
        older = history.id_before(self._conn, NO_BOUND if newer is None else newer)
        if older is None and full:
            return None
        return numbers if _spread_ids(run, older or 0, newer, numbers) else None

    def _add_commits(
        self,
        delta: HistoryDelta,
        numbers: Mapping[str, int],
        shared: Mapping[str, int],
        renames: Mapping[int, Renames],
    ) -> None:
        places = PastPlaces(self._scope.ids)
        touches = Touches(places)
        for name in delta.order:
            if name in numbers:
                touches.add(numbers[name], delta.added[name])
            elif name in shared:
                places.follow(renames.get(shared[name], ()))
        listed = sorted((number, delta.added[name]) for name, number in numbers.items())
        insert_commits(self._conn, self._scope.repo_id, listed)
        touches.store(self._conn)
        counts, newest = touches.pairs(self._scope.pair_bound)
        history.add_pairs(self._conn, [(*pair, counts[pair], newest[pair]) for pair in sorted(counts)])
        insert_terms(self._conn, listed)

    def _delete_oldest(self, surplus: int) -> None:
        leaving = history.list_touched(self._conn, 0, history.oldest_ids(self._conn, surplus)[-1])
        pairs: Counter[tuple[int, int]] = Counter()
        for touched in leaving:
            if touched.files_changed <= self._scope.pair_bound:
                pairs.update(combinations(touched.file_ids, 2))
        history.remove_pairs(self._conn, [(*pair, pairs[pair]) for pair in sorted(pairs)])
        history.delete_commits(self._conn, [touched.id for touched in leaving])
        history.drop_dead_lost(self._conn)


def _spread_ids(run: Sequence[str], older: int, newer: int | None, numbers: dict[str, int]) -> bool:
    """Give the commits of `run` (newest first) ids between the two; False if the gap is too small."""
    step = GAP if newer is None else (newer - older) // (len(run) + 1)
    for place, name in enumerate(reversed(run), start=1):
        numbers[name] = older + place * step
    return step > 0


def _history_steps(
    delta: HistoryDelta, shared: Mapping[str, int], renames: Mapping[int, Renames]
) -> Iterator[Step]:
    """The added commits, and known ones among them, newest first."""
    for name in delta.order:
        entry, number = delta.added.get(name), shared.get(name)
        if entry is not None:
            yield Step(in_old=False, id=None, renames=entry.renames)
        else:
            yield Step(in_old=True, id=number, renames=() if number is None else renames.get(number, ()))
