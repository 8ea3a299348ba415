"""Forked processes that share a list of tasks."""

import os

import pytest

from clean_room_agent.errors import IndexingError
from clean_room_agent.indexer import workers
from clean_room_agent.indexer.workers import Channel, WorkerPool


def work(channel: Channel) -> None:
    for task in channel.tasks():
        channel.send((os.getpid(), task))
    channel.send("done")


@pytest.mark.parametrize("size", [1, 3])
def test_each_task_is_done_once_whoever_does_it(size: int) -> None:
    with WorkerPool(size, tasks=50, body=work) as pool:
        found = list(pool.messages("done"))
    assert sorted(task for _, task in found) == list(range(50))
    assert os.getpid() not in {process for process, _ in found}


def test_every_worker_hears_what_the_parent_tells() -> None:
    def repeat(channel: Channel) -> None:
        channel.send(channel.wait() * 2)
        channel.send("done")

    with WorkerPool(2, tasks=0, body=repeat) as pool:
        pool.tell([1])
        assert list(pool.messages("done")) == [[1, 1], [1, 1]]


def test_what_a_worker_raises_the_parent_raises() -> None:
    def fail(channel: Channel) -> None:
        raise IndexingError(f"{channel.wait()} cannot be read")

    with WorkerPool(1, tasks=0, body=fail) as pool:
        pool.tell("a.py")
        with pytest.raises(IndexingError, match=r"a\.py cannot be read"):
            list(pool.messages("done"))


def test_a_worker_that_is_killed_is_an_error() -> None:
    with (
        WorkerPool(1, tasks=0, body=lambda _: os.kill(os.getpid(), 9)) as pool,
        pytest.raises(IndexingError, match="was killed"),
    ):
        list(pool.messages("done"))


def test_the_file_that_a_worker_died_of_is_named() -> None:
    def read(_: Channel) -> None:
        workers.note_reading("a longer name.py")
        workers.note_reading("b.py")
        os.abort()

    with (
        WorkerPool(1, tasks=0, body=read) as pool,
        pytest.raises(IndexingError, match=r"was killed \(SIGABRT\) while it read b\.py$"),
    ):
        list(pool.messages("done"))


def test_no_worker_outlives_the_block() -> None:
    def tell_and_wait(channel: Channel) -> None:
        channel.send(os.getpid())
        channel.wait()

    with WorkerPool(1, tasks=0, body=tell_and_wait) as pool:
        process = next(pool.messages("done"))
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
