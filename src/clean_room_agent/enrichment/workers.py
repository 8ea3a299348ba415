"""A few threads that work through a sequence, and can be left behind when they do not come back."""

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Generic, TypeVar

JobT = TypeVar("JobT")
ResultT = TypeVar("ResultT")

TICK = 1.0
"""Seconds between two calls of `tick` while nothing else happens."""


class Workers(Generic[JobT, ResultT]):
    """Threads that do `work` on jobs.

    They are daemons: an answer of a slow model can take minutes, and who wants to stop must not have to wait for it.
    """

    def __init__(self, work: Callable[[JobT], ResultT], *, count: int) -> None:
        self._work = work
        self._jobs: queue.SimpleQueue[JobT | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[ResultT | None, BaseException | None]] = queue.SimpleQueue()
        self._count = count

    def run(
        self, jobs: Iterator[JobT], *, tick: Callable[[], None], stopping: Callable[[int], None]
    ) -> Generator[ResultT, None, None]:
        """The results, in the order in which they come. Jobs are taken from `jobs` in this thread, one ahead of need.

        On Ctrl-C no further job is begun, `stopping` is told how many are under way, and their results still come; then
        KeyboardInterrupt is raised. On a second one it is raised at once.

        Raises:
            Whatever `work` raises, when it does; what is under way is left behind.
        """
        threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(self._count)]
        for thread in threads:
            thread.start()
        try:
            yield from self._feed(jobs, tick, stopping)
        finally:
            for _ in threads:
                self._jobs.put(None)

    def _feed(
        self, jobs: Iterator[JobT], tick: Callable[[], None], stopping: Callable[[int], None]
    ) -> Iterator[ResultT]:
        under_way = 0
        interrupted: KeyboardInterrupt | None = None
        while True:
            try:
                while interrupted is None and under_way <= self._count:
                    job = next(jobs, None)
                    if job is None:
                        break
                    self._jobs.put(job)
                    under_way += 1
                if not under_way:
                    break
                result = self._next(tick)
            except KeyboardInterrupt as exc:
                if interrupted is not None:
                    raise
                interrupted = exc
                under_way -= self._take_back()
                stopping(under_way)
                continue
            under_way -= 1
            yield result
        if interrupted is not None:
            raise interrupted

    def _next(self, tick: Callable[[], None]) -> ResultT:
        while True:
            tick()
            try:
                result, error = self._done.get(timeout=TICK)
            except queue.Empty:
                continue
            if error is not None:
                raise error
            return result  # type: ignore[return-value]  # without an error there is a result

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
            try:
                self._done.put((self._work(job), None))
            except BaseException as exc:  # noqa: BLE001 - it is raised in the thread that asked
                self._done.put((None, exc))
