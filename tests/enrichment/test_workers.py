"""Threads that can be left behind: order, one job ahead, errors, and Ctrl-C once and twice."""

import threading
from collections.abc import Iterator

import pytest
from tests.fakes.patience import PATIENCE

from clean_room_agent.enrichment.workers import Workers


def quiet() -> None:
    """Nothing to show."""


def unexpected(under_way: int) -> None:
    raise AssertionError(f"nobody stopped, and {under_way} were under way")


class Presses:
    """Ctrl-C at the given ticks, as it would reach the waiting thread."""

    def __init__(self, *ticks: int) -> None:
        self._ticks = ticks
        self._seen = 0

    def __call__(self) -> None:
        self._seen += 1
        if self._seen in self._ticks:
            raise KeyboardInterrupt


def test_every_job_has_its_result() -> None:
    workers = Workers[int, int](lambda job: job * job, count=3)
    assert sorted(workers.run(iter(range(1, 50)), tick=quiet, stopping=unexpected)) == [
        job * job for job in range(1, 50)
    ]


def test_no_job_is_no_result() -> None:
    assert list(Workers[int, int](abs, count=2).run(iter(()), tick=quiet, stopping=unexpected)) == []


def test_jobs_are_taken_one_ahead_of_need() -> None:
    taken: list[int] = []

    def jobs() -> Iterator[int]:
        for number in range(1, 10):
            taken.append(number)
            yield number

    results = Workers[int, int](abs, count=2).run(jobs(), tick=quiet, stopping=unexpected)
    next(results)
    assert taken == [1, 2, 3]
    results.close()


def test_no_more_jobs_are_under_way_than_there_are_threads() -> None:
    lock = threading.Lock()
    both = threading.Barrier(2, timeout=PATIENCE)
    running: set[int] = set()
    peak = 0

    def work(job: int) -> int:
        nonlocal peak
        with lock:
            running.add(job)
            peak = max(peak, len(running))
        both.wait()
        with lock:
            running.discard(job)
        return job

    list(Workers[int, int](work, count=2).run(iter(range(1, 7)), tick=quiet, stopping=unexpected))
    assert peak == 2


def test_what_a_job_raises_is_raised() -> None:
    def work(job: int) -> int:
        if job == 2:
            raise ValueError(job)
        return job

    results = Workers[int, int](work, count=1).run(iter((1, 2, 3)), tick=quiet, stopping=unexpected)
    assert next(results) == 1
    with pytest.raises(ValueError, match="2"):
        next(results)


def test_ctrl_c_lets_what_is_under_way_come_to_its_end() -> None:
    begun = threading.Event()
    go_on = threading.Event()
    done: list[int] = []
    told: list[int] = []

    def work(job: int) -> int:
        begun.set()
        assert go_on.wait(PATIENCE)
        done.append(job)
        return job

    def press_once() -> None:
        assert begun.wait(PATIENCE)
        if not told:
            raise KeyboardInterrupt

    def stopping(under_way: int) -> None:
        told.append(under_way)
        go_on.set()

    results = Workers[int, int](work, count=1).run(iter(range(1, 9)), tick=press_once, stopping=stopping)
    assert next(results) == 1
    with pytest.raises(KeyboardInterrupt):
        next(results)
    assert (told, done) == ([1], [1])


def test_a_second_ctrl_c_waits_for_nothing() -> None:
    go_on = threading.Event()
    told: list[int] = []

    def work(job: int) -> int:
        assert go_on.wait(PATIENCE)
        return job

    results = Workers[int, int](work, count=1).run(iter((1,)), tick=Presses(1, 2), stopping=told.append)
    with pytest.raises(KeyboardInterrupt):
        next(results)
    assert len(told) == 1
    go_on.set()
