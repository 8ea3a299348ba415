"""Runs the jobs of a batch in parallel, here, each in a process of its own, or on a Ray cluster. A job's run is started,
resumed, or found finished.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.app.batch_tasks import BatchJob
from clean_room_agent.app.resumption import recorded_config
from clean_room_agent.app.settings import flags_text, load_settings
from clean_room_agent.app.solve import SolveRequest, as_object, exit_code, request_again, run_solve
from clean_room_agent.app.wiring import workspace_of
from clean_room_agent.artifacts.outcomes import ENDED, WHOLE, RunStatus
from clean_room_agent.cancellation import on_interrupt
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.runs import (
    OrchestratorRunRow,
    get_orchestrator_run,
    list_events,
    recorded_evidence,
)
from clean_room_agent.errors import CraError, Interrupted
from clean_room_agent.json_values import to_shown
from clean_room_agent.orchestrator.events import (
    Event,
    Note,
    Observer,
    PassFinished,
    PassStarted,
    TestsFinished,
)
from clean_room_agent.report.live import Broadcast
from clean_room_agent.workspace import Workspace

SHOWN = ("reason", "evidence", "branch", "files", "tests", "parts", "steps", "calls", "tokens", "seconds")
INTERRUPTED = 130
STOPPED = frozenset({*ENDED, RunStatus.PARTIAL, RunStatus.NEEDS_HUMAN})


class JobOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of a job."""

    job: BatchJob
    status: str
    """The run's status; `error` if the run could not be started or resumed."""
    exit_code: int
    """As of `cra solve`."""
    how: str
    """new, resumed, or known: the run had ended at an earlier start."""
    detail: Mapping[str, Any]
    """The output of `cra solve --json`, without its texts."""
    error: str = ""
    hint: str = ""


TOLD = (Note, TestsFinished, PassStarted, PassFinished)
"""Events that are handed to the parent process: those by which a person sees how far a run is."""


class EventSender:
    """An `Observer` that sends some events to the parent process, as long as that reads them."""

    def __init__(self, answer: Connection) -> None:
        self._answer = answer

    def notice(self, event: Event) -> None:
        """Send `event`, if it is one of `TOLD`."""
        if isinstance(event, TOLD):
            with contextlib.suppress(OSError):
                self._answer.send(event)


def solve_job(job: BatchJob, observers: tuple[Observer, ...] = ()) -> JobOutcome:
    """Run the job to its end, or to a state that the next start can resume."""
    outcome = JobOutcome(job=job, status="error", exit_code=1, how="new", detail={})
    try:
        workspace = workspace_of(job.repo)
        row = _known(workspace, job.task_id)
        if row is not None and (row.status in WHOLE or (row.status in STOPPED and not job.retry)):
            return _as_recorded(workspace, job, row)
        if row is None:
            request = SolveRequest(task=job.task, given=job.given, flags=flags_text(job.overrides))
            overrides = job.overrides
        else:
            outcome = replace(outcome, how="resumed")
            _, request, overrides = request_again(workspace, job.task_id, job.overrides, hint="")
        settings = load_settings(workspace.config, overrides)
        code, summary = run_solve(workspace, settings, request, Broadcast(observers), task_id=job.task_id)
        told = as_object(summary)
        return replace(
            outcome, status=told["status"], exit_code=code, detail={key: told[key] for key in SHOWN}
        )
    except (KeyboardInterrupt, Interrupted):
        return replace(outcome, status=RunStatus.INTERRUPTED.value, exit_code=INTERRUPTED)
    except CraError as error:
        return replace(outcome, exit_code=error.exit_code, error=error.message, hint=error.hint)
    except Exception as error:  # noqa: BLE001 - one task's bug does not end the others
        return replace(outcome, error=f"this is a bug in cra: {type(error).__name__}: {error}")


def serve(job: BatchJob, answer: Connection) -> None:
    """Run the job, and send its events and then its outcome to the parent process; if the parent dies, the run is interrupted.

    The process has a separate process group: Ctrl-C at the terminal reaches only the batch, which passes it on once.
    """
    os.setpgid(0, 0)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    outcome = solve_job(job, (EventSender(answer),))
    with contextlib.suppress(BrokenPipeError):
        answer.send(outcome)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _known(workspace: Workspace, task_id: str) -> OrchestratorRunRow | None:
    if not workspace.raw.exists():
        return None
    with contextlib.closing(get_connection("raw", repo_path=workspace.repo, read_only=True)) as conn:
        return get_orchestrator_run(conn, task_id)


def _as_recorded(workspace: Workspace, job: BatchJob, row: OrchestratorRunRow) -> JobOutcome:
    with contextlib.closing(get_connection("raw", repo_path=workspace.repo, read_only=True)) as conn:
        evidence = recorded_evidence(list_events(conn, row.task_id)) or ()
        accept = recorded_config(conn, row).get("testing", {}).get("accept", "all-pass")
    return JobOutcome(
        job=job,
        status=row.status.value,
        exit_code=exit_code(row.status, evidence, accept),
        how="known",
        detail={
            "reason": row.reason,
            "evidence": to_shown(evidence),
            "branch": row.branch,
            "parts": {"done": row.parts_completed, "total": row.total_parts},
            "steps": {"done": row.steps_completed, "total": row.total_steps},
        },
    )


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
