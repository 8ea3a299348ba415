"""A pool of threads that can be abandoned while they wait for a slow model."""

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Generic, Literal, TypeVar

from clean_room_agent.errors import Interrupted

JobT = TypeVar("JobT")
ResultT = TypeVar("ResultT")
Ending = Literal["done", "failed", "dropped", "woken"]

TICK = 1.0
"""Seconds between two calls of `tick` while nothing else happens."""


class Stop:
    """A request to begin nothing new. A signal handler may make it, so nothing here takes a lock or raises."""

    def __init__(self) -> None:
        self._asked = False
        self._wake: Callable[[], object] = bool

    def ask(self) -> None:
        """From now on nothing new begins."""
        self._asked = True
        self._wake()

    def asked(self) -> bool:
        """Whether `ask` was called."""
        return self._asked

    def wake_with(self, wake: Callable[[], object]) -> None:
        """`wake` is called by `ask`, so that whoever waits notices at once."""
        self._wake = wake


class Workers(Generic[JobT, ResultT]):
    """Daemon threads that do `work` on jobs: a slow model can take minutes to answer, and stopping must not wait for that."""

    def __init__(self, work: Callable[[JobT], ResultT], *, count: int, stop: Stop) -> None:
        """`work` raises Interrupted if `stop` kept it from finishing; the job then has no result."""
        self._work = work
        self._jobs: queue.SimpleQueue[JobT | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[Ending, ResultT | None, BaseException | None]] = (
            queue.SimpleQueue()
        )
        self._count = count
        self._stop = stop

    def run(
        self, jobs: Iterator[JobT], *, tick: Callable[[], None], stopping: Callable[[int], None]
    ) -> Generator[ResultT, None, None]:
        """The results, in the order in which they come. Jobs are taken from `jobs` in this thread, one ahead of need.

        Once `stop` is asked for, no further job is begun, `stopping` is told how many are under way, and their results
        still come; then KeyboardInterrupt is raised. However it ends, nothing new begins afterwards.

        Raises:
            Whatever `work` raises, when it does; what is under way is left behind.
        """
        self._stop.wake_with(lambda: self._done.put(("woken", None, None)))
        threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(self._count)]
        for thread in threads:
            thread.start()
        try:
            yield from self._feed(jobs, tick, stopping)
        finally:
            self._stop.ask()
            for _ in threads:
                self._jobs.put(None)

    def _feed(
        self, jobs: Iterator[JobT], tick: Callable[[], None], stopping: Callable[[int], None]
    ) -> Iterator[ResultT]:
        under_way = 0
        announced = False
        while True:
            while not self._stop.asked() and under_way <= self._count:
                job = next(jobs, None)
                if job is None:
                    break
                self._jobs.put(job)
                under_way += 1
            if self._stop.asked() and not announced:
                announced = True
                under_way -= self._take_back()
                stopping(under_way)
            if not under_way:
                break
            ending, result, error = self._next(tick)
            if error is not None:
                raise error
            under_way -= ending != "woken"
            if ending == "done":
                yield result  # type: ignore[misc]  # what is done has a result
        if self._stop.asked():
            raise KeyboardInterrupt

    def _next(self, tick: Callable[[], None]) -> tuple[Ending, ResultT | None, BaseException | None]:
        while True:
            tick()
            try:
                return self._done.get(timeout=TICK)
            except queue.Empty:
                continue

    def _take_back(self) -> int:
        """How many jobs were not begun; they are dropped."""
        dropped = 0
        while True:
            try:
                self._jobs.get_nowait()
            except queue.Empty:
                return dropped
            dropped += 1

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            if self._stop.asked():
                self._done.put(("dropped", None, None))
                continue
            try:
                self._done.put(("done", self._work(job), None))
            except Interrupted:
                self._done.put(("dropped", None, None))
            except BaseException as exc:  # noqa: BLE001 - it is raised in the thread that asked
                self._done.put(("failed", None, exc))
