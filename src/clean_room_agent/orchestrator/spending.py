"""A run's budgets, what it has spent on models and time, and a log of its time from before its record is opened until
it is closed.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from clean_room_agent.artifacts.names import counted
from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.db.raw.calls import CallTotals
from clean_room_agent.db.raw.runs import TimeSpanRow
from clean_room_agent.orchestrator.run_config import OrchestratorConfig

NOTHING_SPENT = CallTotals(calls=0, prompt_tokens=0, completion_tokens=0, latency_ms=0)


class Meter:
    """Counts calls from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent = NOTHING_SPENT
        self._fullest = (0, 0)

    def begin(self, spent: CallTotals) -> None:
        """Add what a run spent before it was resumed."""
        with self._lock:
            self._spent = spent

    def add(self, *, prompt_tokens: int, completion_tokens: int, latency_ms: int, window: int) -> None:
        """Count one call."""
        with self._lock:
            self._spent = CallTotals(
                calls=self._spent.calls + 1,
                prompt_tokens=self._spent.prompt_tokens + prompt_tokens,
                completion_tokens=self._spent.completion_tokens + completion_tokens,
                latency_ms=self._spent.latency_ms + latency_ms,
            )
            if window and prompt_tokens * max(1, self._fullest[1]) >= self._fullest[0] * window:
                self._fullest = (prompt_tokens, window)

    def read(self) -> CallTotals:
        """The totals so far."""
        with self._lock:
            return self._spent

    def take_fullest(self) -> tuple[int, int]:
        """(prompt tokens, window) of the fullest prompt since the last call; (0, 0) if there was none."""
        with self._lock:
            fullest, self._fullest = self._fullest, (0, 0)
            return fullest


class Budget:
    """The budgets of one run, and how much of them is used up, including by earlier processes of a resumed run."""

    def __init__(
        self, limits: OrchestratorConfig, meter: Meter, now: Callable[[], float], *, used_before: float = 0.0
    ) -> None:
        """`now` is a monotonic clock; it and `used_before` are in seconds."""
        self._limits = limits
        self._meter = meter
        self._now = now
        self._started_at = now() - used_before

    def seconds(self) -> float:
        """Seconds that the run has taken."""
        return self._now() - self._started_at

    def spent(self) -> str:
        """Which budget is used up; "" while none is."""
        return next((words for used, most, words in self._used() if used >= most), "")

    def share(self) -> float:
        """The used share of the budget that is most used up; 1 is all."""
        return max(used / most for used, most, _ in self._used())

    def _used(self) -> tuple[tuple[float, float, str], ...]:
        """(how much is used, how much may be, in words) of each budget."""
        limits, spent, minutes = self._limits, self._meter.read(), self.seconds() / 60
        calls, tokens = counted(spent.calls, "model call"), counted(spent.tokens, "token")
        return (
            (spent.calls, limits.max_calls, f"{calls} (max_calls = {limits.max_calls})"),
            (spent.tokens, limits.max_tokens, f"{tokens} (max_tokens = {limits.max_tokens})"),
            (minutes, limits.max_minutes, f"{minutes:.0f} minutes (max_minutes = {limits.max_minutes:g})"),
        )


class Timed(Protocol):
    """Times a `with` block, even if it raises."""

    def __call__(self, kind: TimeKind, detail: str = "", /) -> AbstractContextManager[None]:
        """The block."""


class TimeLog:
    """Collects time spans, and keeps them until it is connected to the record. Thread-safe."""

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
        """Add a span that began then and ends now."""
        row = TimeSpanRow(
            task_id=self._task_id, kind=kind, detail=detail, began_at=began_at, ended_at=self._clock()
        )
        with self._lock:
            self._sink(row)

    @contextlib.contextmanager
    def connected(self, sink: Callable[[TimeSpanRow], object]) -> Iterator[None]:
        """During the block, `sink` gets every span, earlier ones first; spans that end later are dropped."""
        with self._lock:
            for row in self._early:
                sink(row)
            self._sink = sink
        try:
            yield
        finally:
            with self._lock:
                self._sink = lambda _: None


def untimed(kind: TimeKind, detail: str = "", /) -> AbstractContextManager[None]:
    """A `Timed` that measures nothing, for work outside of a run."""
    del kind, detail
    return contextlib.nullcontext()
