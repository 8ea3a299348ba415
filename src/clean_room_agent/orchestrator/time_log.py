"""Times what a run does, from before its record is open until it is closed."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.db.raw.runs import TimeSpanRow


class Timed(Protocol):
    """Times what is done in a `with` block, also where it raises."""

    def __call__(self, kind: TimeKind, detail: str = "", /) -> AbstractContextManager[None]:
        """The block."""


class TimeLog:
    """Keeps what is timed until it is connected to the record; usable by any number of threads."""

    def __init__(self, task_id: str, clock: Callable[[], str]) -> None:
        """`clock`: UTC ISO 8601."""
        self._task_id = task_id
        self._clock = clock
        self._lock = threading.Lock()
        self._early: list[TimeSpanRow] = []
        self._sink: Callable[[TimeSpanRow], object] = self._early.append

    @contextlib.contextmanager
    def timed(self, kind: TimeKind, detail: str = "", /) -> Iterator[None]:
        """As `Timed`."""
        began = self._clock()
        try:
            yield
        finally:
            self.add(kind, detail, began_at=began)

    def add(self, kind: TimeKind, detail: str = "", *, began_at: str) -> None:
        """Note what began then and ends now."""
        row = TimeSpanRow(
            task_id=self._task_id, kind=kind, detail=detail, began_at=began_at, ended_at=self._clock()
        )
        with self._lock:
            self._sink(row)

    @contextlib.contextmanager
    def connected(self, sink: Callable[[TimeSpanRow], object]) -> Iterator[None]:
        """In the block, `sink` gets every span, the early ones first; one that ends after it is dropped."""
        with self._lock:
            for row in self._early:
                sink(row)
            self._sink = sink
        try:
            yield
        finally:
            with self._lock:
                self._sink = _drop


def untimed(kind: TimeKind, detail: str = "", /) -> AbstractContextManager[None]:
    """For what is no part of a run."""
    del kind, detail
    return contextlib.nullcontext()


def _drop(row: TimeSpanRow) -> None:
    del row
