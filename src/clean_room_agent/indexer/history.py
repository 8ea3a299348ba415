"""Past commits, the files of today that they touched, and which files change together."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

from clean_room_agent.db.curated import history, state
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import GitError
from clean_room_agent.git.command import git
from clean_room_agent.git.history import LoggedCommit, log_raw, parse_log_record
from clean_room_agent.indexer.config import IndexConfig

HEAD_KEY = "history_head"
UNPLACED_KEY = "history_unplaced"
"""Paths that the log names, or that left the index, and that no file has today: a file that takes one has a past."""
LAST_SECOND = 253_402_300_799


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChange:
    """What bringing the history up to date did."""

    commits: int
    """How many were read."""
    stale: frozenset[int]
    """Ids of files whose past is another now."""


NOTHING = HistoryChange(commits=0, stale=frozenset())


def refresh_history(
    conn: Connection,
    root: Path,
    config: IndexConfig,
    *,
    repo_id: int,
    ids: Mapping[str, int],
    added: Collection[str],
    removed: Collection[str],
) -> HistoryChange:
    """The database holds the newest commits that HEAD reaches, as if all were read anew.

    They are read anew unless they went on in a straight line from what is known, without renames. (Where a merge
    brings older commits, or a rename gives old commits a new file, they would not just stand before the known ones.)

    Args:
        conn: open, in a transaction.
        root: the work tree's top.
        config: bounds.
        repo_id: the repository's id.
        ids: path -> id of all files of today.
        added: paths that the index did not have.
        removed: paths that it has no more.
    """
    head = _head(root) if config.history else None
    known = state.get_state(conn, HEAD_KEY)
    unplaced = set(json.loads(state.get_state(conn, UNPLACED_KEY) or "[]"))
    reappeared = not unplaced.isdisjoint(added)
    if removed and known is not None:
        unplaced.update(removed)
        state.put_state(conn, UNPLACED_KEY, json.dumps(sorted(unplaced)))
    if head == known and not reappeared:
        return NOTHING
    if (
        head is not None
        and known is not None
        and not reappeared
        and _is_straight(root, known, head, config.history)
    ):
        newer = _read(root, since=known, limit=config.history)
        if not any(file.status == "R" for commit in newer for file in commit.files):
            return _append(conn, newer, config, repo_id=repo_id, ids=ids, head=head, unplaced=unplaced)
    history.clear_history(conn)
    commits = _read(root, since=None, limit=config.history) if head is not None else ()
    change = _append(conn, commits, config, repo_id=repo_id, ids=ids, head=head, unplaced=set())
    return HistoryChange(commits=change.commits, stale=frozenset(ids.values()))


def _head(root: Path) -> str | None:
    return (
        git("rev-parse", "--verify", "-q", "HEAD^{commit}", cwd=root, ok=(0, 1, 128)).decode().strip() or None
    )


def _is_straight(root: Path, known: str, head: str, limit: int) -> bool:
    """Whether the commits after `known` are one line of single parents that begins at it."""
    try:
        listed = git("rev-list", "--parents", f"--max-count={limit + 1}", head, f"^{known}", cwd=root)
    except GitError:
        return False  # `known` is gone: the history was rewritten and its rest thrown away
    lines = [line.split() for line in listed.decode().splitlines()]
    if not 0 < len(lines) <= limit:
        return False
    expected = [*(line[0] for line in lines[1:]), known]
    return all(line[1:] == [parent] for line, parent in zip(lines, expected, strict=True))


def _read(root: Path, *, since: str | None, limit: int) -> tuple[LoggedCommit, ...]:
    return tuple(parse_log_record(record) for record in log_raw(root, since=since, limit=limit))


def _append(
    conn: Connection,
    commits: tuple[LoggedCommit, ...],
    config: IndexConfig,
    *,
    repo_id: int,
    ids: Mapping[str, int],
    head: str | None,
    unplaced: set[str],
) -> HistoryChange:
    """`commits` (newest first) stand after what is there; what is beyond the bound at the old end is gone."""
    touched, unknown = _place(commits, ids)
    first_id = history.next_commit_id(conn)
    numbered = list(enumerate(reversed(list(zip(commits, touched, strict=True))), start=first_id))
    history.insert_commits(
        conn,
        (
            (
                number,
                repo_id,
                commit.hash,
                commit.author,
                commit.message,
                _time(commit.timestamp),
                len(commit.files),
            )
            for number, (commit, _) in numbered
        ),
    )
    history.insert_file_commits(
        conn, sorted((file_id, number) for number, (_, file_ids) in numbered for file_id in file_ids)
    )
    _add_pairs(conn, [(commit, file_ids) for _, (commit, file_ids) in numbered], config.pair_bound)
    stale = {file_id for file_ids in touched for file_id in file_ids}
    stale |= _forget_oldest(conn, config)
    if head is None:
        state.delete_state(conn, HEAD_KEY)
    else:
        state.put_state(conn, HEAD_KEY, head)
    state.put_state(conn, UNPLACED_KEY, json.dumps(sorted(unplaced | unknown)))
    return HistoryChange(commits=len(commits), stale=frozenset(stale))


def _place(commits: Iterable[LoggedCommit], ids: Mapping[str, int]) -> tuple[list[tuple[int, ...]], set[str]]:
    """The files of today that each commit touched, and the paths that none has; renames are followed backwards."""
    today: dict[str, str] = {}
    touched: list[tuple[int, ...]] = []
    unknown: set[str] = set()
    for commit in commits:
        paths = {today.get(file.path, file.path) for file in commit.files}
        touched.append(tuple(sorted(ids[path] for path in paths if path in ids)))
        unknown.update(path for path in paths if path not in ids)
        today.update(
            (file.old_path, today.get(file.path, file.path))
            for file in commit.files
            if file.status == "R" and file.old_path is not None
        )
    return touched, unknown


def _add_pairs(conn: Connection, commits: Iterable[tuple[LoggedCommit, tuple[int, ...]]], bound: int) -> None:
    counts: Counter[tuple[int, int]] = Counter()
    newest: dict[tuple[int, int], str] = {}
    for commit, file_ids in commits:
        if len(commit.files) <= bound:
            for pair in combinations(file_ids, 2):
                counts[pair] += 1
                newest[pair] = commit.hash
    history.add_pairs(conn, ((*pair, counts[pair], newest[pair]) for pair in sorted(counts)))


def _forget_oldest(conn: Connection, config: IndexConfig) -> set[int]:
    surplus = history.count_commits(conn) - config.history
    if surplus <= 0:
        return set()
    oldest = history.list_oldest(conn, surplus)
    counts: Counter[tuple[int, int]] = Counter()
    for _, files_changed, file_ids in oldest:
        if files_changed <= config.pair_bound:
            counts.update(combinations(file_ids, 2))
    history.remove_pairs(conn, ((*pair, counts[pair]) for pair in sorted(counts)))
    history.delete_commits(conn, (commit_id for commit_id, _, _ in oldest))
    return {file_id for _, _, file_ids in oldest for file_id in file_ids}


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(min(max(seconds, 0), LAST_SECOND), tz=UTC).isoformat()
