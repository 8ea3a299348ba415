"""The jobs of a batch: read from JSON Lines, each with the same task id whenever the batch is started, and run in parallel, here,
each in a process of its own, or on a Ray cluster. A job's run is started, resumed, or found finished.
"""

import contextlib
import hashlib
import json
import multiprocessing
import os
import signal
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from clean_room_agent.app.resumption import recorded_config
from clean_room_agent.app.run_wiring import NEEDED
from clean_room_agent.app.settings import Overrides, flags_text, load_settings
from clean_room_agent.app.solving import (
    SolveRequest,
    as_object,
    exit_code,
    plan_given,
    request_again,
    run_solve,
)
from clean_room_agent.app.wiring import workspace_of
from clean_room_agent.artifacts.goals import NOTHING_GIVEN, GivenEvidence
from clean_room_agent.artifacts.names import counted
from clean_room_agent.artifacts.outcomes import ENDED, WHOLE, RunStatus
from clean_room_agent.cancellation import end_with_parent, on_interrupt
from clean_room_agent.db.connection import read_record
from clean_room_agent.db.raw.runs import (
    OrchestratorRunRow,
    get_orchestrator_run,
    list_events,
    recorded_evidence,
)
from clean_room_agent.errors import CraError, Interrupted, UsageError
from clean_room_agent.file_contents import read_given, require_text
from clean_room_agent.json_values import to_shown
from clean_room_agent.orchestrator.events import (
    Event,
    Note,
    Observer,
    PassFinished,
    PassStarted,
    TestsFinished,
)
from clean_room_agent.orchestrator.task import PlanGiven
from clean_room_agent.report.live import Broadcast
from clean_room_agent.workspace import Workspace

MAX_FAULTS = 10


class TaskLine(BaseModel):
    """One line: what to do, and where."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    task: str | None = None
    """What to change, in words."""
    issue: str | None = None
    """Instead of `task`: a file that contains the words."""
    id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._-]{1,64}$")
    """The task's name in the summary; the line's number by default."""
    repo: str | None = None
    """The repository; by default that of the command."""
    plan: str | None = None
    """A plan to follow, as with `cra solve --plan`."""
    check: str | list[str] = []
    """What must hold at the end, as with `cra solve --check`."""
    test: str | list[str] = []
    """Tests that must pass at the end, as with `cra solve --test`."""
    file: str | list[str] = []
    """The only files to change, as with `cra solve --file`."""

    @model_validator(mode="after")
    def _says_what(self) -> "TaskLine":
        if self.plan is None and (self.task is None) == (self.issue is None):
            raise ValueError("give the task either as task or as issue (a file)")
        return self

    @property
    def evidence(self) -> GivenEvidence:
        """How the task is judged, and where it is."""
        return GivenEvidence(
            tests=_as_tuple(self.test), checks=_as_tuple(self.check), files=_as_tuple(self.file)
        )


def _as_tuple(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


class BatchJob(Struct, frozen=True, kw_only=True):
    """One task, ready to run wherever its repository is."""

    name: str
    line: int
    repo: Path
    task_id: str
    """The same for the same batch, repository, name and words, so that a second start finds its runs."""
    task: str
    given: PlanGiven
    overrides: Overrides
    retry: bool
    """Whether a run that ended without success is resumed."""


def read_jobs(
    path: Path, *, repo: Path, batch: str, overrides: Overrides, retry: bool
) -> tuple[BatchJob, ...]:
    """The jobs of the file, in its order. Paths in it are relative to its folder; blank lines are skipped.

    Raises:
        UsageError: lines are invalid; the message names at most ten. Nothing was started.
    """
    text = read_given(path)
    jobs: list[BatchJob] = []
    faults: list[str] = []
    names: dict[str, int] = {}
    if overrides.budget_config is not None:  # jobs may run elsewhere
        overrides = replace(overrides, budget_config=overrides.budget_config.absolute())
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            job = _parse_job(line, number, path.absolute().parent, repo, batch, overrides, retry=retry)
            if (first := names.setdefault(job.name, number)) != number:
                raise UsageError(f"the id {job.name!r} is already used in line {first}")
            jobs.append(job)
        except CraError as error:
            remedy = f" -> {error.hint}" if error.hint else ""
            faults.append(f"line {number}: {error.message}{remedy}")
    if faults:
        more = f"\n  and {counted(len(faults) - MAX_FAULTS, 'more line')}" if len(faults) > MAX_FAULTS else ""
        raise UsageError(
            f"{path}: nothing was started\n  " + "\n  ".join(faults[:MAX_FAULTS]) + more,
            hint='a line is an object: {"task": "...", "id": "...", "repo": "..."}; see cra batch --help',
        )
    if not jobs:
        raise UsageError(f"{path} contains no task", hint='write a line for each: {"task": "..."}')
    return tuple(jobs)


def _parse_job(
    line: str, number: int, folder: Path, repo: Path, batch: str, overrides: Overrides, *, retry: bool
) -> BatchJob:
    """The job of the line; paths in it are relative to `folder`. Raises CraError if the line is invalid."""
    read = _task_line(line)
    top = _configured_top(folder / read.repo if read.repo is not None else repo, overrides)
    workspace = workspace_of(top)
    plan = folder / read.plan if read.plan else None
    given, planned = plan_given(workspace, plan, None, read.evidence, folder=folder)
    words = read.task if read.issue is None else read_given(folder / read.issue)
    task = (words if words is not None else planned).strip()
    if not task:
        raise UsageError("the task is empty")
    require_text(task, "the task")
    name = read.id or str(number)
    # In this form since before there was evidence: runs of a batch are found again by it.
    followed = f"PlanGiven(meta_plan={given.meta_plan!r}, single={given.single!r}, hints=())"
    judged = "" if given.evidence == NOTHING_GIVEN else repr(given.evidence)
    parts = (batch, str(top), name, task, f"{followed if read.plan else ''}{judged}")
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
    return BatchJob(
        name=name,
        line=number,
        repo=top,
        task_id=str(uuid.UUID(bytes=digest[:16], version=4)),
        task=task,
        given=given,
        overrides=overrides,
        retry=retry,
    )


def _task_line(line: str) -> TaskLine:
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise UsageError(f"not JSON: {exc}") from exc
    if not isinstance(found, dict):
        raise UsageError("not a JSON object")
    try:
        return TaskLine.model_validate(found)
    except ValidationError as exc:
        told = []
        for error in exc.errors():
            key = ".".join(map(str, error["loc"]))
            if error["type"] == "extra_forbidden":
                told.append(f"unknown key {key!r}; known: {', '.join(TaskLine.model_fields)}")
            else:
                told.append(
                    f"{key}: {error['msg']}" if key else str(error["msg"]).removeprefix("Value error, ")
                )
        raise UsageError("; ".join(told)) from exc


@cache
def _configured_top(path: Path, overrides: Overrides) -> Path:
    """The top of the repository at `path`, once it is checked that its configuration has all that a run needs."""
    workspace = workspace_of(path)
    load_settings(workspace.config, overrides).require(*NEEDED)
    return workspace.repo


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
        row = _recorded_run(workspace, job.task_id)
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
    end_with_parent()
    outcome = solve_job(job, (EventSender(answer),))
    with contextlib.suppress(BrokenPipeError):
        answer.send(outcome)


def _recorded_run(workspace: Workspace, task_id: str) -> OrchestratorRunRow | None:
    if not workspace.raw.exists():
        return None
    with read_record(workspace.repo) as conn:
        return get_orchestrator_run(conn, task_id)


def _as_recorded(workspace: Workspace, job: BatchJob, row: OrchestratorRunRow) -> JobOutcome:
    with read_record(workspace.repo) as conn:
        evidence = recorded_evidence(list_events(conn, row.task_id)) or ()
        accept = recorded_config(conn, row).get("testing", {}).get("accept", "goals")
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
                    self._start_job(waiting.pop(0))
                ready = set(wait([each.answer for each in self._running], timeout=1.0))
                for each in [each for each in self._running if each.answer in ready]:
                    outcome = self._receive_outcome(each)
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

    def _start_job(self, job: BatchJob) -> None:
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=serve, args=(job, theirs), name=f"cra batch {job.name}")
        process.start()
        theirs.close()
        self._running.append(_Running(job=job, process=process, answer=mine))
        self._watch(job, None)

    def _receive_outcome(self, done: _Running) -> JobOutcome | None:
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
