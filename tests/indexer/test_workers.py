"""Forked processes that share a list of tasks."""

import os

import pytest

from clean_room_agent.errors import IndexingError
from clean_room_agent.indexer import workers
from clean_room_agent.indexer.workers import Channel, Crew


def work(channel: Channel) -> None:
    for task in channel.tasks():
        channel.send((os.getpid(), task))
    channel.send("done")


@pytest.mark.parametrize("size", [1, 3])
def test_each_task_is_done_once_whoever_does_it(size: int) -> None:
    with Crew(size, tasks=50, body=work) as crew:
        found = list(crew.messages("done"))
    assert sorted(task for _, task in found) == list(range(50))
    assert os.getpid() not in {process for process, _ in found}


def test_a_task_stands_for_those_that_the_pipe_has_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MAX_TASKS", 3)
    with Crew(2, tasks=10, body=work) as crew:
        assert sorted(task for _, task in crew.messages("done")) == list(range(10))


def test_every_worker_hears_what_the_parent_tells() -> None:
    def repeat(channel: Channel) -> None:
        channel.send(channel.wait() * 2)
        channel.send("done")

    with Crew(2, tasks=0, body=repeat) as crew:
        crew.tell([1])
        assert list(crew.messages("done")) == [[1, 1], [1, 1]]


def test_what_a_worker_raises_the_parent_raises() -> None:
    def fail(channel: Channel) -> None:
        raise IndexingError(f"{channel.wait()} cannot be read")

    with Crew(1, tasks=0, body=fail) as crew:
        crew.tell("a.py")
        with pytest.raises(IndexingError, match=r"a\.py cannot be read"):
            list(crew.messages("done"))


def test_a_worker_that_is_killed_is_an_error() -> None:
    with (
        Crew(1, tasks=0, body=lambda _: os.kill(os.getpid(), 9)) as crew,
        pytest.raises(IndexingError, match="was killed"),
    ):
        list(crew.messages("done"))


def test_no_worker_outlives_the_block() -> None:
    def tell_and_wait(channel: Channel) -> None:
        channel.send(os.getpid())
        channel.wait()

    with Crew(1, tasks=0, body=tell_and_wait) as crew:
        process = next(crew.messages("done"))
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
