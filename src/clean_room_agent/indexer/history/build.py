"""Reads git history into the index: commits, the files they touched, and files that change together.

Modules that are needed only to read and write new commits are imported late: most runs find none.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.db.curated import files
from clean_room_agent.db.rows import Connection
from clean_room_agent.git.log import Answer, LogEntry, ask_log, graph_marks, lacks_contents, read_log
from clean_room_agent.indexer.index_run import Bounds
from clean_room_agent.json_values import from_json, to_json

if TYPE_CHECKING:
    from clean_room_agent.indexer.history.rows import Scope
    from clean_room_agent.indexer.history.sync import HistoryDelta

HEAD_KEY = "history_head"


class HistoryState(Struct, frozen=True, kw_only=True, array_like=True):
    """What the indexed history covers; it can be continued as long as the limits stay the same."""

    head: str | None
    """The commit; None: there was none, or none was wanted."""
    bound: int
    """`[index].history`."""
    pair_bound: int
    """`[index].pair_bound`."""
    graph: str
    """See `git.log.graph_marks`."""


def read_state(conn: Connection) -> HistoryState | None:
    """Return what `keep_state` stored; None in a new index."""
    text = files.get_index_state(conn, HEAD_KEY)
    return None if text is None else from_json(text, HistoryState)


def keep_state(conn: Connection, kept: HistoryState) -> None:
    """Store the state for `read_state`."""
    files.put_index_state(conn, HEAD_KEY, to_json(kept))


class _WantedHistory(Struct, frozen=True, kw_only=True):
    """The range of history to read, and how to ask git for parts of it."""

    top: Path
    state: HistoryState
    partial: bool

    def start_log(self) -> Answer:
        """Start git on the log."""
        return ask_log(self.top, self.state.head or "", limit=self.state.bound, partial=self.partial)

    def read_commits(self, hashes: Sequence[str]) -> list[LogEntry]:
        """Read just these commits."""
        log = ask_log(self.top, *hashes, limit=None, partial=self.partial, walk=False)
        return read_log(log.take())


class PendingHistory:
    """History that git is already reading; `collect` its answers, then write them, and `close` it."""

    def __init__(self, wanted: _WantedHistory, *, known: str | None, log: Answer | None, blank: bool) -> None:
        self._wanted = wanted
        self._known = known
        self._log = log
        self._entries: list[LogEntry] | None = [] if blank else None
        self._delta: HistoryDelta | None = None
        self._has_commits = False

    @property
    def is_news(self) -> bool:
        """Whether there is history that the index lacks, assuming that no files changed."""
        return self._log is not None or self._entries is not None

    def collect(self) -> None:
        """Read git's answers. Call it once.

        Raises:
            GitError: git failed.
        """
        if self._log is None:
            return
        head = self._wanted.state.head
        if self._known is not None and head is not None:
            from clean_room_agent.indexer.history.sync import find_delta  # noqa: PLC0415 - see the first lines

            self._delta = find_delta(self._wanted.top, head=head, known=self._known, log=self._log)
            if self._delta is None:
                self._read_all()
        else:
            self._entries = read_log(self._log.take())

    def close(self) -> None:
        """Abandon whatever git is still doing."""
        if self._log is not None:
            self._log.drop()

    def write_commits(self, conn: Connection, *, repo_id: int) -> None:
        """Write the commits of a history that was read from scratch, in a transaction that replaces the whole index; this need not wait
        for the list of files.
        """
        if self._entries is not None:
            from clean_room_agent.indexer.history.rows import write_commits  # noqa: PLC0415 - see the first lines

            write_commits(conn, repo_id, self._entries)
            self._has_commits = True

    def write(self, conn: Connection, *, repo_id: int, ids: Mapping[str, int]) -> int:
        """Bring the stored history up to date; the result is the same as if it were read from scratch. Return how many
        commits were read. `ids`: path -> id of every current file, as the table `files` holds them.
        """
        from clean_room_agent.indexer.history.rows import Scope, write_touches  # noqa: PLC0415 - see the first lines

        state = self._wanted.state
        scope = Scope(repo_id=repo_id, ids=ids, bound=state.bound, pair_bound=state.pair_bound)
        if self._entries is None:
            commits = self._go_on(conn, scope)
            if commits is not None:
                return commits
            self._read_all()
        entries = self._entries or []
        if not self._has_commits:
            self.write_commits(conn, repo_id=repo_id)
        write_touches(conn, scope, entries)
        keep_state(conn, state)
        return len(entries)

    def _go_on(self, conn: Connection, scope: "Scope") -> int | None:
        from clean_room_agent.indexer.history.sync import HistorySync  # noqa: PLC0415 - see the first lines

        sync = HistorySync(conn, scope, self._wanted.read_commits)
        sync.find_lost()
        delta = self._delta
        if delta is not None:
            if not sync.follow(delta):
                return None
            sync.settle_terms()
            keep_state(conn, self._wanted.state)
        sync.settle_pairs()
        return 0 if delta is None else len(delta.added)

    def _read_all(self) -> None:
        self._entries = read_log(self._wanted.start_log().take())


def begin_history(
    root: Path, config: Bounds, *, head: str | None, state: HistoryState | None
) -> PendingHistory:
    """Start git on whatever history the index lacks up to the commit `head` that is checked out, and return without waiting for it."""
    partial = lacks_contents(root)
    now = HistoryState(
        head=head if config.history else None,
        bound=config.history,
        pair_bound=config.pair_bound,
        graph=graph_marks(root, partial=partial),
    )
    wanted = _WantedHistory(top=root, state=now, partial=partial)
    if state == now:
        return PendingHistory(wanted, known=None, log=None, blank=False)
    if now.head is None:
        return PendingHistory(wanted, known=None, log=None, blank=True)
    if state is None or state.head is None or replace(state, head=now.head) != now:
        return PendingHistory(wanted, known=None, log=wanted.start_log(), blank=False)
    log = ask_log(root, now.head, f"^{state.head}", limit=None, partial=partial)
    return PendingHistory(wanted, known=state.head, log=log, blank=False)
