"""Runs the jobs of a batch in parallel: here, each in a process of its own, or on a Ray cluster."""

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from msgspec import Struct

from clean_room_agent.app.batch_tasks import BatchJob
from clean_room_agent.app.batch_worker import INTERRUPTED, JobOutcome, serve, solve_job
from clean_room_agent.cancellation import on_interrupt
from clean_room_agent.orchestrator.events import Event


class _Running(Struct, frozen=True, kw_only=True):
    job: BatchJob
    process: BaseProcess
    answer: Connection


Watch = Callable[[BatchJob, Event | None], None]
"""Is called with each job that starts, and with each event of it."""


def run_jobs(jobs: Sequence[BatchJob], *, engine: str, parallel: int, watch: Watch) -> Iterator[JobOutcome]:
    """The outcomes as they arrive, `parallel` jobs at a time; those that run here are watched."""
    if engine == "ray":
        from clean_room_agent.training.cluster import call_on_ray

        return call_on_ray(solve_job, jobs, parallel)
    return LocalEngine(parallel, watch).run(jobs)


class LocalEngine:
    """Starts jobs as processes of this machine, yields the outcome of each, and stops early on Ctrl-C."""

    def __init__(self, jobs: int, watch: Watch) -> None:
        """`jobs`: processes at a time."""
        self._jobs = jobs
        self._watch = watch
        self._running: list[_Running] = []
        self._ending = False

    def run(self, jobs: Sequence[BatchJob]) -> Iterator[JobOutcome]:
        """The outcomes, in the order in which the jobs end. After a request to stop, no other job is started, and each
        run in progress ends when nothing is half done.
        """
        waiting = list(jobs)
        with on_interrupt(self._pass_on), self._left_to_end():
            while self._running or (waiting and not self._ending):
                while waiting and len(self._running) < self._jobs and not self._ending:
                    self._start(waiting.pop(0))
                ready = set(wait([each.answer for each in self._running], timeout=1.0))
                for each in [each for each in self._running if each.answer in ready]:
                    outcome = self._received(each)
                    if outcome is not None:
                        yield outcome

    @contextlib.contextmanager
    def _left_to_end(self) -> Iterator[None]:
        """If the body fails, or no more outcomes are wanted, wait until the runs in progress have ended."""
        try:
            yield
        finally:
            if self._running:
                self._pass_on()
            for each in self._running:
                each.answer.close()  # nobody would wait for it to be read
                each.process.join()

    def _start(self, job: BatchJob) -> None:
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=serve, args=(job, theirs), name=f"cra batch {job.name}")
        process.start()
        theirs.close()
        self._running.append(_Running(job=job, process=process, answer=mine))
        self._watch(job, None)

    def _received(self, done: _Running) -> JobOutcome | None:
        """The outcome, if that arrived, or the process has died; None if it was an event."""
        try:
            outcome: JobOutcome | Event | None = done.answer.recv()
        except EOFError:
            outcome = None
        if outcome is not None and not isinstance(outcome, JobOutcome):
            self._watch(done.job, outcome)
            return None
        done.answer.close()
        done.process.join()
        self._running.remove(done)
        if outcome is not None:
            return outcome
        died = f"its process ended with code {done.process.exitcode}; the next start continues it"
        return JobOutcome(
            job=done.job,
            status="interrupted" if self._ending else "error",
            exit_code=INTERRUPTED if self._ending else 1,
            how="new",
            detail={},
            error="" if self._ending else died,
        )

    def _pass_on(self) -> None:
        self._ending = True
        for each in self._running:
            if each.process.pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each.process.pid, signal.SIGINT)
