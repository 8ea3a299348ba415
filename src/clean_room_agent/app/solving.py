"""Carries out a solve request, and summarises the run."""

import contextlib
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field, structs

from clean_room_agent.app import wiring
from clean_room_agent.app.apply_result import bring
from clean_room_agent.app.fit.fitted import RECORDED, fitted, sums_of_runs, with_recorded
from clean_room_agent.app.given_evidence import checked_evidence, places_of, together
from clean_room_agent.app.leftovers import reap
from clean_room_agent.app.model_server import first_model, loading
from clean_room_agent.app.resumption import (
    changes_since,
    given_to,
    recorded_config,
    resumable,
    with_earlier_flags,
)
from clean_room_agent.app.run_index import IndexProcess, refresh_for_run
from clean_room_agent.app.run_wiring import begin_timing, run_parts, task_of
from clean_room_agent.app.settings import Overrides, Settings, flags_text
from clean_room_agent.artifacts.goals import NOTHING_GIVEN, GivenEvidence, GoalOutcome
from clean_room_agent.artifacts.names import BRANCHES, new_task_id, short_id
from clean_room_agent.artifacts.outcomes import (
    ENDED,
    WHOLE,
    EventKind,
    OrchestratorResult,
    RunStatus,
    TimeKind,
)
from clean_room_agent.artifacts.plans import MetaPlan, PlanArtifact
from clean_room_agent.cancellation import Interrupts, interruptible
from clean_room_agent.db.connection import read_record
from clean_room_agent.db.raw.runs import EventRow, OrchestratorRunRow, append_events, find_task
from clean_room_agent.errors import ArtifactError, ModelError, RepositoryError, UsageError
from clean_room_agent.execute.plan_file import load_plan, plan_from_artifact
from clean_room_agent.file_contents import read_given, require_text
from clean_room_agent.git.generated import generated_in
from clean_room_agent.git.history import diff_stat
from clean_room_agent.git.refs import with_package
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.json_values import to_shown
from clean_room_agent.llm.transport import Transport
from clean_room_agent.orchestrator.events import Note, Observer
from clean_room_agent.orchestrator.finishing import Solved
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.goal_verdict import has_open_goal
from clean_room_agent.orchestrator.journal import seconds_used
from clean_room_agent.orchestrator.run_config import Accept
from clean_room_agent.orchestrator.setup import opened_run
from clean_room_agent.orchestrator.solve import solve
from clean_room_agent.orchestrator.spending import TimeLog
from clean_room_agent.orchestrator.task import PlanGiven
from clean_room_agent.report.causes import ending_of
from clean_room_agent.report.run_view import outline
from clean_room_agent.report.summary import Ending, RunSummary, touched_on_record
from clean_room_agent.report.trace import RunTrace, read_trace
from clean_room_agent.report.validation import last_of
from clean_room_agent.version import VERSION
from clean_room_agent.workspace import Workspace

EXIT_CODES = {
    RunStatus.COMPLETE: 0,
    RunStatus.FAILED: 1,
    RunStatus.PARTIAL: 4,
    RunStatus.NEEDS_HUMAN: 4,
    RunStatus.UNPROVEN: 5,
}
PROVES_NOTHING: frozenset[Accept] = frozenset({"green", "untested"})
"""The values of [testing] accept with which an unproven result is as good as a complete one, if no test could show more."""


def exit_code(status: RunStatus, evidence: Collection[GoalOutcome], accept: Accept) -> int:
    """The exit code of a run that ended like this."""
    if status is RunStatus.UNPROVEN and accept in PROVES_NOTHING and not has_open_goal(evidence):
        return 0
    return EXIT_CODES.get(status, 1)


class SolveRequest(Struct, frozen=True, kw_only=True):
    """One solve as requested on the command line."""

    task: str
    given: PlanGiven = field(default_factory=PlanGiven)
    apply: bool = False
    command: str = "solve"
    replay_of: OrchestratorRunRow | None = None
    resume: bool = False
    """Whether the task began before and is resumed; its words are then those of the record."""
    hint: str = ""
    fit: Mapping[str, Any] | None = None
    """What a resumed run was given of what was measured of its models."""
    flags: str = ""
    """Flags that override the configuration, as JSON; "" for none."""


def request_again(
    workspace: Workspace, prefix: str, overrides: Overrides, *, hint: str
) -> tuple[str, SolveRequest, Overrides]:
    """The id of the task that begins with `prefix`, the request to resume it, and its flags overridden by the present
    ones.

    Raises:
        UsageError: no run begins like this, or it cannot be resumed.
    """
    require_text(hint, "--hint")
    wiring.require_record(workspace)
    with read_record(workspace.repo) as conn:
        task_id = find_task(conn, prefix)
        row = resumable(conn, task_id)
        request = SolveRequest(
            task=row.task_description,
            resume=True,
            hint=hint.strip(),
            fit=recorded_config(conn, row).get(RECORDED),
            flags=flags_text(overrides),
        )
        return task_id, request, with_earlier_flags(conn, task_id, overrides)


def plan_given(
    workspace: Workspace,
    plan_file: Path | None,
    meta_file: Path | None,
    evidence: GivenEvidence = NOTHING_GIVEN,
    *,
    folder: Path | None = None,
) -> tuple[PlanGiven, str]:
    """The plans in reviewed plan files, with their evidence and what is given besides; and the task's words if a file has them
    ("" otherwise). `folder` is where relative paths of the evidence are looked for beside the repository.

    Raises:
        UsageError: both files were given, or one cannot be read, or something of the evidence is wrong.
        ArtifactError: a file is not the kind of plan that its flag asks for; the message names the field.
    """
    if plan_file is not None and meta_file is not None:
        raise UsageError("--plan and --meta-plan exclude each other")
    if evidence != NOTHING_GIVEN:
        evidence = checked_evidence(workspace, evidence, folder=folder)
    path = plan_file or meta_file
    if path is None:
        return PlanGiven(evidence=evidence), ""
    plan = load_plan(read_given(path), str(path), places_of(workspace))
    if isinstance(plan, PlanArtifact):
        evidence = _with_evidence_of(workspace, plan, evidence)
    if plan_file is not None:
        if not isinstance(plan, PlanArtifact):
            raise ArtifactError(
                f"{path}: --plan takes what `cra plan` wrote, or a task with steps; this has only parts",
                hint="use --meta-plan for it",
            )
        return PlanGiven(single=plan_from_artifact(plan), evidence=evidence), plan.task
    if isinstance(plan, MetaPlan):
        return PlanGiven(meta_plan=plan, evidence=evidence), ""
    return PlanGiven(meta_plan=plan.meta_plan, evidence=evidence), plan.task


def _with_evidence_of(workspace: Workspace, plan: PlanArtifact, evidence: GivenEvidence) -> GivenEvidence:
    told = plan.evidence
    own = GivenEvidence(tests=told.tests, checks=told.checks, files=told.files)
    return together(checked_evidence(workspace, own, folder=workspace.repo), evidence)


def run_solve(
    workspace: Workspace,
    settings: Settings,
    request: SolveRequest,
    observer: Observer,
    transport: Callable[[Settings], Transport] = wiring.live_transport,
    task_id: str | None = None,
    entered_at: str = "",
) -> tuple[int, RunSummary]:
    """Run the request: its exit code and summary. `entered_at`: when Enter was pressed (UTC, ISO 8601); "" if unknown."""
    task_id = task_id or new_task_id()
    times = begin_timing(settings, transport, task_id, entered_at)
    started = time.monotonic()
    repo = _open_and_clean_up(workspace, settings, times)
    new = not request.resume and request.replay_of is None
    live = new and transport is wiring.live_transport
    settings = _with_fit(workspace, settings, request, live=live)
    first = first_model(wiring.router_of(settings), planned=request.given.has_plan)
    workspace.create()
    with (
        # Before anything has threads; a run that is resumed or replayed has an index of its own.
        IndexProcess(
            partial(refresh_for_run, workspace, settings.index, task_id) if new else None, times.timed
        ) as indexing,
        loading(settings.models, first if live else None, times),
        interruptible(task_id) as interrupts,
        wiring.open_services(
            workspace,
            settings,
            task_id,
            transport,
            measured_as=request.replay_of.task_id if request.replay_of else "",
            resume=request.resume,
            watch=observer.notice,
        ) as services,
    ):
        given = request.given
        if services.resumed is not None:
            given = note_resumption(
                services, services.resumed, observer, hint=request.hint, flags=request.flags
            )
        task = task_of(settings, task_id, request.task, given)
        with (
            run_parts(
                services,
                repo,
                task,
                observer,
                indexing=indexing,
                command=request.command,
                times=times,
                replay_of=request.replay_of,
                interrupts=interrupts,
                given=(*flags_event(request.flags), *given.events),
            ) as parts,
            _says_how_to_go_on(task_id),
            opened_run(parts) as run,
        ):
            baseline = run_baseline(run)
            solved = solve(run, given, baseline)
        return _finish_run(services, repo, request, solved, interrupts, started)


def _with_fit(workspace: Workspace, settings: Settings, request: SolveRequest, *, live: bool) -> Settings:
    """The settings with what was measured of their models, and seen in runs: of a run that is resumed, what it had. A replayed run has it in
    its configuration.
    """
    if not live and request.fit is None:
        return settings
    return (
        fitted(settings, sums_of_runs(workspace, settings)) if live else with_recorded(settings, request.fit)
    )


def _open_and_clean_up(workspace: Workspace, settings: Settings, times: TimeLog) -> Repository:
    """Open the repository, and clean up what dead processes left in it."""
    with times.timed(TimeKind.GIT, "open the repository"):
        repo = with_package(open_repository(workspace.repo), BRANCHES)
        reap(workspace, repo, wiring.worktrees_folder(workspace, settings))
    return repo


def _finish_run(
    services: wiring.Services,
    repo: Repository,
    request: SolveRequest,
    solved: Solved,
    interrupts: Interrupts,
    started: float,
) -> tuple[int, RunSummary]:
    """The exit code and the final summary of a run that has just ended, and that began at `started` (monotonic seconds); its
    result is applied if requested.
    """
    applied, refusal = _apply_result(repo, services, solved) if request.apply else (None, None)
    seconds = seconds_used(services.session)
    if solved.result.status in ENDED or request.replay_of is not None:
        with interrupts.shield(is_last=True):
            services.end_task()
    summary = _summary(services, repo, solved, max(seconds, time.monotonic() - started))
    if refusal is not None:
        return refusal.exit_code, structs.replace(summary, not_applied=refusal.message)
    result = solved.result
    code = exit_code(result.status, result.evidence, services.settings.testing.accept)
    return code, structs.replace(summary, applied=applied)


def flags_event(flags: str) -> tuple[tuple[EventKind, str], ...]:
    """The flags as the record keeps them; none for ""."""
    return ((EventKind.FLAGS, flags),) if flags else ()


def note_resumption(
    services: wiring.Services, run: OrchestratorRunRow, observer: Observer, *, hint: str, flags: str
) -> PlanGiven:
    """Record what `run` continues with, all or nothing; returns what the user gave it, then and now.

    Raises:
        ConfigError: the finished part was judged by another test command than is configured now.
    """
    settings, record = services.settings, services.record
    then = record.write(recorded_config, run)
    changed = changes_since(then, settings.data, source=settings.source)
    if run.program_version != VERSION:
        changed = (*changed, f"cra itself was {run.program_version} and is {VERSION}")
    together = {"config": settings.data, "program_version": VERSION}
    noted = [
        *flags_event(flags),
        (EventKind.RESUMED, "; ".join(changed) or "with the same configuration"),
        (EventKind.RESUMED_WITH, json.dumps(together, default=str, sort_keys=True)),
    ]
    if hint:
        noted.append((EventKind.HINT, hint))
    rows = [
        EventRow(task_id=run.task_id, kind=kind, detail=detail, timestamp=record.now())
        for kind, detail in noted
    ]
    record.write(append_events, rows)
    observer.notice(Note(text=f"resuming {short_id(run.task_id)}: finished work is kept"))
    for text in changed:
        observer.notice(Note(text=f"changed since, and applies from here on: {text}"))
    return record.write(given_to, run.task_id)


@contextlib.contextmanager
def _says_how_to_go_on(task_id: str) -> Iterator[None]:
    """Add to a server failure how to continue the run."""
    try:
        yield
    except ModelError as error:
        error.hint = "; ".join(filter(None, (error.hint, f"then cra solve --resume {short_id(task_id)}")))
        raise


def _summary(services: wiring.Services, repo: Repository, solved: Solved, seconds: float) -> RunSummary:
    spent, result = services.meter.read(), solved.result
    return RunSummary(
        result=result,
        trace=outline(services.record.write(read_trace, result.task_id)),
        files=diff_stat(repo, solved.base_commit, solved.result_commit) if solved.result_commit else (),
        calls=spent.calls,
        tokens=spent.tokens,
        seconds=seconds,
        ending=_ending(services, result),
    )


def _ending(services: wiring.Services, result: OrchestratorResult) -> Ending:
    """Why the run did not do what it should; empty if it did, as far as the tests show."""
    if result.status in WHOLE:
        return Ending()
    return services.record.write(ending_of, result.task_id, reason=result.reason)


def _apply_result(
    repo: Repository, services: wiring.Services, solved: Solved
) -> tuple[tuple[str, ...] | None, RepositoryError | None]:
    """The applied paths (None if something fails in the result, or it changed nothing), and the refusal."""
    result = solved.result
    if result.status not in WHOLE or not solved.result_commit:
        return None, None
    try:
        base, commit = solved.base_commit, solved.result_commit
        return bring(repo, services.record, result.task_id, base=base, commit=commit), None
    except RepositoryError as error:
        return None, error


def as_object(summary: RunSummary) -> dict[str, Any]:
    """The run as `--json` answers it."""
    result, trace = summary.result, summary.trace
    touched = touched_on_record(trace.events)
    return {
        "task_id": result.task_id,
        "status": result.status.value,
        "reason": result.reason,
        "evidence": to_shown(result.evidence),
        "ending": to_shown(summary.ending),
        "branch": result.branch,
        "files": to_shown(summary.files),
        "tests": {
            "before": _test_counts(trace, "baseline"),
            "after": _test_counts(trace, "final"),
            "restored": _test_counts(trace, "restored"),
            "touched": to_shown(touched.files),
            "gone": touched.gone,
            "skipped": touched.skipped,
        },
        "parts": {"done": result.parts_completed, "total": result.total_parts},
        "steps": {"done": result.steps_completed, "total": result.total_steps},
        "passes": to_shown(result.passes),
        "calls": summary.calls,
        "tokens": summary.tokens,
        "seconds": round(summary.seconds, 3),
        "fullest_window": {"tokens": summary.fullest[0], "window": summary.fullest[1]},
        "carries_uncommitted": summary.carries_uncommitted,
        "generated": to_shown(generated_in(trace.run.snapshot)) if trace.run else [],
        "applied": summary.applied,
        "not_applied": summary.not_applied,
        "diff": result.cumulative_diff,
    }


def _test_counts(trace: RunTrace, kind: str) -> dict[str, Any] | None:
    row = last_of(trace, kind)
    if row is None:
        return None
    known, failed = row.tests_passed is not None, len(row.failing_tests)
    return {"passed": row.tests_passed or 0, "failed": failed, "known": known, "returncode": row.exit_code}
