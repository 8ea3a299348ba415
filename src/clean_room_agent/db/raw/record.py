"""Writes to raw.sqlite: any number of callers, one synced commit after the other."""

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from clean_room_agent.db.connection import OpenFiles, connect_file, connect_memory, fault_hint, transaction
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import RecordError
from clean_room_agent.workspace import LOCK_TIMEOUT, Workspace, hold

ResultT = TypeVar("ResultT")
P = ParamSpec("P")


class Record:
    """The record of a repository, open for writing by any number of threads; other processes may write, too.

    Events (functions of `db.raw` that take a connection first) run one after the other: one that fails leaves nothing behind.
    """

    def __init__(
        self,
        conn: Connection,
        *,
        lock: Path,
        clock: Callable[[], str],
        patience: float,
        files: OpenFiles | None = None,
    ) -> None:
        self._conn = conn
        self._files = files
        self._lock = lock
        self._patience = patience
        self._clock = clock
        self._mutex = threading.RLock()
        self._posted: list[Callable[[Connection], object]] = []
        self._closed = False

    @classmethod
    def open(cls, repo_path: Path, *, clock: Callable[[], str], patience: float = LOCK_TIMEOUT) -> Self:
        """Open the repository's record, and create it if it is missing.

        Args:
            repo_path: top of the working tree.
            clock: the time as UTC, ISO 8601.
            patience: seconds that a commit waits for another writing process.

        Raises:
            SchemaError: the file is newer than the program, or not ours.
            RecordError: it cannot be opened.
        """
        workspace = Workspace(repo=repo_path)
        workspace.create()
        conn = connect_file("raw", workspace.raw, any_thread=True)
        files = OpenFiles(workspace.raw)
        return cls(conn, lock=workspace.raw_lock, clock=clock, patience=patience, files=files)

    @classmethod
    def in_memory(cls, lock: Path, *, clock: Callable[[], str]) -> Self:
        """A temporary record in memory, which is gone once closed. `lock` is a file that nobody else uses."""
        return cls(connect_memory("raw"), lock=lock, clock=clock, patience=LOCK_TIMEOUT)

    def now(self) -> str:
        """The time for a row."""
        return self._clock()

    def write(
        self, event: Callable[Concatenate[Connection, P], ResultT], *args: P.args, **kwargs: P.kwargs
    ) -> ResultT:
        """Return the event's result, once it is committed and synced.

        Raises:
            RecordError: the database refused it or could not commit it, or an event posted before it was lost.
            Exception: whatever the event itself raises.
        """
        with self._mutex:
            return self._commit(lambda conn: event(conn, *args, **kwargs))

    def post(
        self, event: Callable[Concatenate[Connection, P], object], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Queue the event. It is committed by the next `write` or `close`, which also reports a failure."""
        with self._mutex:
            self._require_open()
            self._posted.append(lambda conn: event(conn, *args, **kwargs))

    def close(self) -> None:
        """Commit what was posted, and close the file; may be called more than once.

        Raises:
            RecordError: a posted event was lost, or the record was moved or replaced.
        """
        with self._mutex:
            if self._closed:
                return
            try:
                self._commit(lambda _: None)
            finally:
                self._closed = True
                # Closing the last connection moves the journal into the file, which is a write, too.
                with contextlib.suppress(RecordError, OSError), self._hold_lock():
                    self._conn.close()
                self._conn.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _commit(self, event: Callable[[Connection], ResultT]) -> ResultT:
        """What was posted is committed, and the event unless something posted was lost."""
        self._require_open()
        outcome: list[ResultT] = []
        refused: Exception | None = None
        try:
            self._require_files()
            with self._hold_lock(), transaction(self._conn):
                lost = self._carry_out_posted()
                try:
                    if lost is None:
                        outcome.append(event(self._conn))
                except Exception as exc:
                    refused = exc
                    raise
            self._posted = []
            self._require_files()
        except (sqlite3.Error, OSError, RecordError) as exc:
            if exc is refused and not isinstance(exc, sqlite3.Error):
                raise
            what = "refused an event" if exc is refused else "cannot be written"
            hint = getattr(exc, "hint", "") or fault_hint(exc, self._lock)
            raise RecordError(f"the record {what}: {exc}", hint=hint) from exc
        if lost is not None:
            raise RecordError(f"a posted event was lost: {lost}", hint=getattr(lost, "hint", "")) from lost
        return outcome[0]

    def _carry_out_posted(self) -> Exception | None:
        """Each posted event that fails leaves nothing behind; returns the first failure."""
        lost: Exception | None = None
        for event in self._posted:
            self._conn.execute("SAVEPOINT posted")
            try:
                event(self._conn)
            except Exception as exc:  # noqa: BLE001 - whoever writes next is told
                lost = lost or exc
                # If SQLite itself rolled back the whole transaction (disk full), this fails, and the commit with it.
                self._conn.execute("ROLLBACK TO posted")
            self._conn.execute("RELEASE posted")
        return lost

    def _hold_lock(self) -> contextlib.AbstractContextManager[Any]:
        return hold(self._lock, timeout=self._patience, what="the record")

    def _require_open(self) -> None:
        if self._closed:
            raise RecordError("the record is closed")

    def _require_files(self) -> None:
        if self._files is not None:
            self._files.require()
