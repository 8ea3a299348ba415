"""Threads that can be left behind: order, one job ahead, errors, and a stop."""

import threading
from collections.abc import Iterator

import pytest
from testing.patience import PATIENCE

from clean_room_agent.enrichment import workers as workers_module
from clean_room_agent.enrichment.workers import Stop, Workers
from clean_room_agent.errors import Interrupted


def quiet() -> None:
    """Nothing to show."""


def unexpected(under_way: int) -> None:
    raise AssertionError(f"nobody stopped, and {under_way} were under way")


def test_every_job_has_its_result() -> None:
    workers = Workers[int, int](lambda job: job * job, count=3, stop=Stop())
    assert sorted(workers.run(iter(range(1, 50)), tick=quiet, stopping=unexpected)) == [
        job * job for job in range(1, 50)
    ]


def test_no_job_is_no_result() -> None:
    assert (
        list(Workers[int, int](abs, count=2, stop=Stop()).run(iter(()), tick=quiet, stopping=unexpected))
        == []
    )


def test_jobs_are_taken_one_ahead_of_need() -> None:
    taken: list[int] = []

    def jobs() -> Iterator[int]:
        for number in range(1, 10):
            taken.append(number)
            yield number

    results = Workers[int, int](abs, count=2, stop=Stop()).run(jobs(), tick=quiet, stopping=unexpected)
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

    list(
        Workers[int, int](work, count=2, stop=Stop()).run(iter(range(1, 7)), tick=quiet, stopping=unexpected)
    )
    assert peak == 2


def test_what_a_job_raises_is_raised() -> None:
    def work(job: int) -> int:
        if job == 2:
            raise ValueError(job)
        return job

    results = Workers[int, int](work, count=1, stop=Stop()).run(
        iter((1, 2, 3)), tick=quiet, stopping=unexpected
    )
    assert next(results) == 1
    with pytest.raises(ValueError, match="2"):
        next(results)


def test_a_stop_lets_what_is_under_way_come_to_its_end() -> None:
    stop, go_on = Stop(), threading.Event()
    done: list[int] = []
    told: list[int] = []

    def work(job: int) -> int:
        stop.ask()
        assert go_on.wait(PATIENCE)
        done.append(job)
        return job

    def stopping(under_way: int) -> None:
        told.append(under_way)
        go_on.set()

    results = Workers[int, int](work, count=1, stop=stop).run(
        iter(range(1, 9)), tick=quiet, stopping=stopping
    )
    assert next(results) == 1
    with pytest.raises(KeyboardInterrupt):
        next(results)
    assert done == [1]
    assert len(told) == 1


def test_a_stop_is_heard_at_once_and_not_at_the_next_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_module, "TICK", PATIENCE * 10)
    stop, begun, go_on = Stop(), threading.Event(), threading.Event()

    def work(job: int) -> int:
        begun.set()
        assert go_on.wait(PATIENCE)
        return job

    def ask() -> None:
        assert begun.wait(PATIENCE)
        stop.ask()

    threading.Thread(target=ask).start()
    results = Workers[int, int](work, count=1, stop=stop).run(
        iter((1,)), tick=quiet, stopping=lambda _: go_on.set()
    )
    assert next(results) == 1


def test_no_job_that_waits_is_begun_after_a_stop() -> None:
    """A thread may take the job ahead just when the stop comes: it must not begin it."""
    stop = Stop()
    begun: list[int] = []

    def work(job: int) -> int:
        begun.append(job)
        stop.ask()  # the job ahead waits already
        return job

    results = Workers[int, int](work, count=1, stop=stop).run(
        iter(range(1, 9)), tick=quiet, stopping=lambda _: None
    )
    assert next(results) == 1
    with pytest.raises(KeyboardInterrupt):
        next(results)
    assert begun == [1]


def test_no_job_is_begun_once_nobody_takes_results_any_more() -> None:
    stop, go_on = Stop(), threading.Event()
    begun: list[int] = []

    def work(job: int) -> int:
        begun.append(job)
        if job == 2:
            assert go_on.wait(PATIENCE)
        return job

    results = Workers[int, int](work, count=1, stop=stop).run(
        iter(range(1, 9)), tick=quiet, stopping=unexpected
    )
    assert next(results) == 1
    results.close()  # job 3 waits at most
    go_on.set()
    for thread in threading.enumerate():
        if "_serve" in thread.name:
            thread.join(PATIENCE)
    assert stop.asked()
    assert begun in ([1], [1, 2])


def test_a_job_that_the_stop_kept_from_its_end_has_no_result() -> None:
    stop = Stop()

    def work(job: int) -> int:
        if job == 2:
            stop.ask()
            raise Interrupted("before its second question")
        return job

    results = Workers[int, int](work, count=1, stop=stop).run(
        iter((1, 2, 3)), tick=quiet, stopping=lambda _: None
    )
    assert next(results) == 1
    with pytest.raises(KeyboardInterrupt):
        next(results)
