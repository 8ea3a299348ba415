"""Updates the indexed history in place; the result is the same as reading it from scratch."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Protocol

from clean_room_agent.db.curated import history_rows
from clean_room_agent.db.curated.files import count_commits
from clean_room_agent.db.rows import Connection
from clean_room_agent.git.log import LogEntry
from clean_room_agent.indexer.history.delta import HistoryDelta
from clean_room_agent.indexer.history.renames import NO_BOUND, Move, PastPlaces, Renames, Step, find_moves
from clean_room_agent.indexer.history.rows import (
    GAP,
    SEARCHED_COMMITS,
    Counts,
    Scope,
    Touches,
    insert_commits,
    insert_terms,
)

MANY = 2000
"""Beyond so many commits to be read again, reading everything is as quick."""


class HistoryReader(Protocol):
    """The questions that an update asks git."""

    def read_commits(self, hashes: Sequence[str]) -> Sequence[LogEntry]:
        """Read just these commits."""

    def count_lines(self, hashes: Sequence[str]) -> Counts:
        """(added, deleted) lines by commit; a commit that cannot be counted is missing."""


class HistorySync:
    """One update of the stored history.

    `_renewed` collects the files whose co-change counts must be computed again, because they cannot be adjusted by adding
    and subtracting.
    """

    def __init__(self, conn: Connection, scope: Scope, reader: HistoryReader) -> None:
        self._conn = conn
        self._scope = scope
        self._reader = reader
        self._renewed: set[int] = set()

    def find_lost(self) -> None:
        """Attribute commits of paths without a file to files that now have these paths."""
        for path in history_rows.list_lost_paths(self._conn):
            file_id = self._scope.ids.get(path)
            if file_id is not None:
                commits = history_rows.take_past(self._conn, path, None, oldest=0, newest=NO_BOUND)
                history_rows.put_past(self._conn, path, file_id, commits)
                history_rows.forget_lost_path(self._conn, path)
                self._renewed.add(file_id)

    def follow(self, delta: HistoryDelta) -> bool:
        """Apply the delta to the stored commits.

        Returns False if the stored rows do not suffice; the history must then be read from scratch.
        """
        full = count_commits(self._conn) >= self._scope.bound
        shared = history_rows.list_ids(self._conn, [name for name in delta.order if name not in delta.added])
        renames = history_rows.list_renames(self._conn, min(shared.values())) if shared else {}
        unclear = self._move(find_moves(_steps(delta, shared, renames)))
        if len(unclear) > MANY:
            return False
        numbers = self._numbers(delta, shared, full=full)
        if numbers is None:
            return False
        self._add(delta, numbers, shared, renames)
        self._place_again(unclear)
        surplus = count_commits(self._conn) - self._scope.bound
        if surplus > 0:
            self._forget(surplus)
        return True

    def settle_pairs(self) -> None:
        """Recompute the co-change counts of files for which adjusting them was not enough."""
        for file_id in sorted(self._renewed):
            history_rows.renew_pairs(self._conn, file_id, self._scope.pair_bound)

    def settle_terms(self) -> None:
        """Keep search terms for the newest commits only."""
        oldest = history_rows.id_at(self._conn, SEARCHED_COMMITS - 1) or 0
        history_rows.drop_terms(self._conn, oldest)

    def settle_lines(self, counts: Counts) -> None:
        """Count the lines of all commits; `counts` holds those already known."""
        uncounted = history_rows.list_uncounted(self._conn)
        missing = [name for name in uncounted if name not in counts]
        found = {**counts, **self._reader.count_lines(missing)} if missing else counts
        history_rows.put_line_counts(
            self._conn,
            [(number, *found[name]) for name, number in uncounted.items() if name in found],
        )

    def _move(self, moves: Sequence[Move]) -> set[int]:
        """Attribute commits to other paths; return the commits for which git must be asked again."""
        ids = self._scope.ids
        unclear: set[int] = set()
        taken: list[tuple[str, list[int]]] = []
        for move in moves:
            source = ids.get(move.source)
            commits = history_rows.take_past(
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
            history_rows.put_past(self._conn, path, target, commits)
            if commits and target is not None:
                self._renewed.add(target)
        return unclear

    def _place_again(self, unclear: Collection[int]) -> None:
        """Read from git what these commits touched."""
        if not unclear:
            return
        hashes = history_rows.list_hashes(self._conn, sorted(unclear))
        entries = {entry.hash: entry for entry in self._reader.read_commits(list(hashes))}
        renames = history_rows.list_renames(self._conn, 0)
        places = PastPlaces(self._scope.ids)
        touches = Touches(places)
        again = {number: entries[name] for name, number in hashes.items()}
        for number in sorted({*renames, *again}, reverse=True):
            if number in again:
                touches.add(number, again[number])
            else:
                places.follow(renames[number])
        history_rows.insert_file_commits(self._conn, touches.file_commits())
        history_rows.insert_lost_commits(self._conn, touches.lost_commits())
        self._renewed.update(touches.by_file)

    def _numbers(
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
                if not _spread(run, shared[name], newer, numbers):
                    return None
                newer, run = shared[name], []
        if not run:
            return numbers
        older = history_rows.id_before(self._conn, NO_BOUND if newer is None else newer)
        if older is None and full:
            return None
        return numbers if _spread(run, older or 0, newer, numbers) else None

    def _add(
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
        self._store(touches, [(numbers[name], delta.added[name]) for name in numbers])

    def _store(self, touches: Touches, numbered: Iterable[tuple[int, LogEntry]]) -> None:
        """Insert new commits and what they touched."""
        listed = sorted(numbered)
        insert_commits(self._conn, self._scope.repo_id, listed, {})
        history_rows.insert_file_commits(self._conn, touches.file_commits())
        history_rows.insert_lost_commits(self._conn, touches.lost_commits())
        counts, newest = touches.pairs(self._scope.pair_bound)
        history_rows.add_pairs(self._conn, [(*pair, counts[pair], newest[pair]) for pair in sorted(counts)])
        insert_terms(self._conn, listed)

    def _forget(self, surplus: int) -> None:
        """Delete the oldest commits."""
        leaving = history_rows.list_touched(self._conn, 0, history_rows.oldest_ids(self._conn, surplus)[-1])
        pairs: Counter[tuple[int, int]] = Counter()
        for touched in leaving:
            if touched.files_changed <= self._scope.pair_bound:
                pairs.update(combinations(touched.file_ids, 2))
        history_rows.remove_pairs(self._conn, [(*pair, pairs[pair]) for pair in sorted(pairs)])
        history_rows.delete_commits(self._conn, [touched.id for touched in leaving])
        history_rows.drop_dead_lost(self._conn)


def _spread(run: Sequence[str], older: int, newer: int | None, numbers: dict[str, int]) -> bool:
    """Give the commits of `run` (newest first) ids between the two; False if the gap is too small."""
    step = GAP if newer is None else (newer - older) // (len(run) + 1)
    for place, name in enumerate(reversed(run), start=1):
        numbers[name] = older + place * step
    return step > 0


def _steps(delta: HistoryDelta, shared: Mapping[str, int], renames: Mapping[int, Renames]) -> Iterator[Step]:
    """The added commits, and known ones among them, newest first."""
    for name in delta.order:
        entry, number = delta.added.get(name), shared.get(name)
        if entry is not None:
            yield Step(in_old=False, id=None, renames=entry.renames)
        else:
            yield Step(in_old=True, id=number, renames=() if number is None else renames.get(number, ()))
