"""Several worktrees of a run, so that the tests of several commits run at a time."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from clean_room_agent.cancellation import stopped_by
from clean_room_agent.orchestrator.events import TestsStarted
from clean_room_agent.orchestrator.testing.results import TestRun
from clean_room_agent.orchestrator.testing.test_bench import TestBench, told_of

ResultT = TypeVar("ResultT")


class Benches:
    """The run's own bench, and more of them once they are needed."""

    def __init__(self, first: TestBench, add: Callable[[int], TestBench]) -> None:
        """`add` makes the bench of that number, from 2; whoever made this removes its worktree."""
        self._benches = [first]
        self._add = add

    def run_step_at(self, commits: Sequence[str]) -> list[TestRun]:
        """The runs at `commits` of the command that judges attempts, `[testing] parallel` at a time, each in a worktree of its
        own; where there is one commit, in the run's own.

        Raises:
            What the first of them, in order, raised; and KeyboardInterrupt: the others are killed.
        """
        first = self._benches[0]
        if len(commits) <= 1 or first.config.parallel == 1:
            runs = []
            for commit in commits:
                first.checkout(commit)
                runs.append(first.run_step())
            return runs
        count = min(len(commits), first.config.parallel)
        while len(self._benches) < count:
            self._benches.append(self._add(len(self._benches) + 1))
        free = self._benches[:count]

        def run_at(index: int) -> TestRun:
            bench = free.pop()
            try:
                bench.checkout(commits[index])
                return bench.run_step_unseen()
            finally:
                free.append(bench)

        first.observer.notice(TestsStarted(what=f"{len(commits)} candidates'"))
        runs = at_a_time(run_at, len(commits), workers=count)
        for run in runs:
            first.observer.notice(told_of("", run))
        return runs


def at_a_time(work: Callable[[int], ResultT], count: int, *, workers: int | None = None) -> list[ResultT]:
    """The results of `work(0)` to `work(count - 1)`, in that order, in as many threads (or `workers`).

    Raises:
        What the first of them, in order, raised; and KeyboardInterrupt. Processes that are under way then are killed.
    """
    stop = threading.Event()

    def watched(index: int) -> ResultT:
        with stopped_by(stop):
            return work(index)

    with ThreadPoolExecutor(max_workers=workers or count, thread_name_prefix="candidate") as pool:
        futures = [pool.submit(watched, index) for index in range(count)]
        try:
            return [future.result() for future in futures]
        finally:
            stop.set()
            for future in futures:
                future.cancel()
