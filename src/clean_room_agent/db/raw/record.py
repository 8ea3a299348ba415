"""Writes to raw.sqlite: one writer thread, any number of callers, and one synced commit for all waiting events."""

import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from clean_room_agent.db.connection import (
    OpenFiles,
    connect_file,
    connect_memory,
    fault_hint,
    transaction,
)
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import RecordError
from clean_room_agent.workspace import LOCK_TIMEOUT, Workspace, hold

ResultT = TypeVar("ResultT")
P = ParamSpec("P")

GROUP = 256
"""Events of one transaction, at most."""
POST_DELAY = 0.05
"""Seconds that posted events wait for a write to share its commit."""


class _Item:
    """One event in the queue; `done` is None if nobody waits for it."""

    __slots__ = ("done", "error", "event", "result")

    def __init__(self, event: Callable[[Connection], Any], done: Future[Any] | None) -> None:
        self.event = event
        self.done = done
        self.result: Any = None
        self.error: BaseException | None = None


class Record:
    """The record of a repository, open for writing by any number of threads; other processes may write, too.

    Events (functions of `db.raw` that take a connection first) run in the order they are submitted, each in a savepoint:
    one that fails leaves nothing behind and does not affect the others.
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
        self._queue: deque[_Item] = deque()
        self._changed = threading.Condition()
        self._waiting = 0
        """Items in the queue that somebody waits for."""
        self._closing = False
        self._lost: RecordError | None = None
        """The first failure of a posted event that nobody has heard of."""
        self._thread = threading.Thread(target=self._run, name="record", daemon=True)
        self._thread.start()

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
        if threading.current_thread() is self._thread:
            raise RecordError("an event cannot write to the record: it is given the connection")
        done: Future[ResultT] = Future()
        self._submit(_Item(lambda conn: event(conn, *args, **kwargs), done))
        return done.result()

    def post(
        self, event: Callable[Concatenate[Connection, P], object], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Queue the event. It is committed by the next `write` or `close` at the latest, which also reports a failure."""
        self._submit(_Item(lambda conn: event(conn, *args, **kwargs), None))

    def close(self) -> None:
        """Commit everything submitted and close the file; may be called more than once.

        Raises:
            RecordError: a posted event was lost, or the record was moved or replaced.
        """
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        self._tell_lost()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _submit(self, item: _Item) -> None:
        with self._changed:
            if self._closing:
                raise RecordError("the record is closed")
            self._queue.append(item)
            self._waiting += item.done is not None
            self._changed.notify_all()

    def _tell_lost(self) -> None:
        lost, self._lost = self._lost, None
        if lost is not None:
            raise lost

    def _run(self) -> None:
        while group := self._next_group():
            self._carry_out(group)
            for item in group:
                self._answer(item)
        self._shut()

    def _next_group(self) -> list[_Item]:
        """The events to commit next; empty once the record is closing and nothing is queued."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closing)
            self._changed.wait_for(lambda: self._waiting or self._closing, timeout=POST_DELAY)
            group = [self._queue.popleft() for _ in range(min(GROUP, len(self._queue)))]
            self._waiting -= sum(item.done is not None for item in group)
            return group

    def _carry_out(self, group: list[_Item]) -> None:
        """Give every item its result or error, and commit those with a result."""
        try:
            self._require_files()
            with hold(self._lock, timeout=self._patience, what="the record"), transaction(self._conn):
                for item in group:
                    self._carry_out_one(item)
            self._require_files()
        except (sqlite3.Error, OSError, RecordError) as exc:
            for item in group:
                if item.error is None:
                    hint = getattr(exc, "hint", "") or fault_hint(exc, self._lock)
                    self._fail(item, RecordError(f"the record cannot be written: {exc}", hint=hint), exc)

    def _carry_out_one(self, item: _Item) -> None:
        if item.done is not None and self._lost is not None:
            item.error, self._lost = self._lost, None
            return
        self._conn.execute("SAVEPOINT event")
        try:
            item.result = item.event(self._conn)
        except sqlite3.Error as exc:
            hint = fault_hint(exc, self._lock)
            self._fail(item, RecordError(f"the record refused an event: {exc}", hint=hint), exc)
        except BaseException as exc:  # noqa: BLE001 - it is its submitter's to handle, in the submitter's thread
            self._fail(item, exc)
        if item.error is not None:
            # If SQLite itself rolled back the whole transaction (disk full), this fails, and the group with it.
            self._conn.execute("ROLLBACK TO event")
        self._conn.execute("RELEASE event")

    def _fail(self, item: _Item, error: BaseException, cause: Exception | None = None) -> None:
        if cause is not None:
            error.__cause__ = cause
        item.error = error
        if item.done is None and self._lost is None:
            self._lost = RecordError(f"a posted event was lost: {error}", hint=getattr(error, "hint", ""))
            self._lost.__cause__ = error

    def _answer(self, item: _Item) -> None:
        if item.done is None:
            return
        if item.error is not None:
            item.done.set_exception(item.error)
        else:
            item.done.set_result(item.result)

    def _require_files(self) -> None:
        if self._files is not None:
            self._files.require()

    def _shut(self) -> None:
        try:
            self._require_files()
        except RecordError as exc:
            self._lost = self._lost or exc
        try:
            # Closing the last connection moves the journal into the file, which is a write, too.
            with hold(self._lock, timeout=self._patience, what="the record"):
                self._conn.close()
        except (RecordError, OSError):
            self._conn.close()
