"""A step: attempts until one passes, or until the recovery rule says to stop."""

from dataclasses import dataclass, replace

from clean_room_agent.artifacts.ids import implement_pass
from clean_room_agent.artifacts.outcomes import AttemptOutcome, PassType
from clean_room_agent.artifacts.package import ContextPackage
from clean_room_agent.artifacts.tasks import Evidence, RefinementRequest, RoomRequest
from clean_room_agent.db.raw.attempts import AttemptRow, ValidationRow
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.implement import raised_answer_tokens, usual_answer_tokens
from clean_room_agent.git.history import changed_paths
from clean_room_agent.orchestrator.attempt import StepJob, Tried, try_once
from clean_room_agent.orchestrator.chronicle import OpenPass, PassEnd
from clean_room_agent.orchestrator.events import PassProgress
from clean_room_agent.orchestrator.missing import is_new
from clean_room_agent.orchestrator.recovery import Action, AttemptSeen, Limits, decide
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.setup import tell
from clean_room_agent.orchestrator.testing.evidence import evidence_of


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnd:
    """How a step ended: with its accepted attempt, or with the reason why it was given up."""

    accepted: Tried | None
    why: str = ""
    stop: bool = False
    """Whether the whole run has to stop."""


def run_step(run: Run, job: StepJob) -> StepEnd:
    """The step is done and is the run's head, or the worktree is back at the head as it was."""
    room: ContextPackage | None = None
    tries: list[Tried] = []
    seen: list[AttemptSeen] = []
    refinements: list[RefinementRequest] = []
    action = Action(kind="retry", rule="first attempt")
    while True:
        number = len(tries) + 1
        pass_id = implement_pass(run.task_id, job.part.id, job.step.id, number)
        opened = _open(run, job, pass_id, number)
        try:
            room = _room(run, job, room, pass_id, action, refinements)
            run.observer.notice(PassProgress(doing="writing the edits"))
            tried = try_once(
                run,
                job,
                room,
                pass_id=pass_id,
                number=number,
                failures=[earlier.summary() for earlier in tries],
                action=action,
            )
        except WindowExceeded as error:
            return _too_large(run, opened, error)
        tries.append(tried)
        _record(run, opened, tried, number)
        if tried.outcome is AttemptOutcome.APPLIED_AND_PASSED:
            _accept(run, tried)
            return StepEnd(accepted=tried)
        run.bench.checkout(run.progress.head)
        missing = tried.missing if tried.missing and is_new(tried.missing, refinements) else None
        seen.append(AttemptSeen(outcome=tried.outcome, fingerprint=tried.fingerprint, missing=missing))
        action = decide(seen, _limits(run, number, len(refinements)))
        run.chronicle.recovery(pass_id, seen[-1], action)
        run.session.for_pass(pass_id).set_state("retry_context", {"feedback": tried.feedback})
        if action.kind == "refine" and missing is not None:
            refinements.append(missing)
        if action.kind in {"skip", "stop"}:
            return StepEnd(
                accepted=None, why=f"{tried.outcome.value}: {tried.detail}", stop=action.kind == "stop"
            )


def _too_large(run: Run, opened: OpenPass, error: WindowExceeded) -> StepEnd:
    """The step is given up, because what it has to show does not fit; other steps may be smaller."""
    tell(run.chronicle, run.observer, run.task_id, f"{error.message} ({error.hint})")
    run.chronicle.close_pass(opened, PassEnd(success=False, detail=error.message), now=run.monotonic())
    return StepEnd(accepted=None, why=error.message)


def request_for(run: Run, job: StepJob, pass_id: str) -> RoomRequest:
    """What the step's first attempt asks of retrieval."""
    accepted = run.progress.accepted
    return RoomRequest(
        pass_id=pass_id,
        mode="implement",
        role="coding",
        task=run.task,
        focus=job.step.description,
        files=tuple(target.path for target in job.step.target_files if target.role != "create"),
        symbols=job.step.target_symbols,
        evidence=evidence_of(accepted) if accepted is not None else Evidence(),
    )


def _open(run: Run, job: StepJob, pass_id: str, number: int) -> OpenPass:
    at = run.progress
    count = f"step {len(at.done) + len(at.failed) + 1}/{max(at.total_steps, 1)}"
    title = f"{count} {job.part.id}/{job.step.id}" + (f", attempt {number}" if number > 1 else "")
    return run.chronicle.open_pass(
        PassType.IMPLEMENT,
        pass_id,
        title,
        mode="implement",
        role="coding",
        now=run.monotonic(),
        part_id=job.part.id,
        step_id=job.step.id,
    )


def _room(
    run: Run,
    job: StepJob,
    room: ContextPackage | None,
    pass_id: str,
    action: Action,
    refinements: list[RefinementRequest],
) -> ContextPackage:
    """The first attempt's room; for a retry the same again, one with what was missing added, or a smaller one."""
    first = request_for(run, job, implement_pass(run.task_id, job.part.id, job.step.id))
    if room is None:
        run.observer.notice(PassProgress(doing="looking for what it needs"))
        return run.context.retrieve(first)
    again = replace(first, pass_id=pass_id, extra_reserved=_extra_reserved(run) if action.more_room else 0)
    if action.kind != "refine":
        return run.context.retrieve(again) if _crowds_the_answer(run, room, again) else room
    run.observer.notice(PassProgress(doing="looking for what was missing"))
    before = {(item.path, item.symbol) for item in room.items}
    refined = run.context.refine(refinements[-1], again)
    added = [item for item in refined.items if (item.path, item.symbol) not in before]
    names = tuple(item.path if item.symbol is None else f"{item.path}::{item.symbol}" for item in added)
    run.chronicle.refinement(pass_id, refinements[-1], names)
    return refined


def _extra_reserved(run: Run) -> int:
    """What an answer after one that was cut off takes beyond the configured reserve."""
    window = run.models.window("coding")
    return raised_answer_tokens(window) - usual_answer_tokens(window)


def _crowds_the_answer(run: Run, room: ContextPackage, again: RoomRequest) -> bool:
    """Whether the room holds more than `again` leaves for content; never so for one that was made for it."""
    window = run.models.window("coding")
    return room.budget.used_tokens > window.context - window.reserved - again.extra_reserved


def _limits(run: Run, attempts: int, refinements: int) -> Limits:
    return Limits(
        attempts_left=run.limits.solve.max_attempts - attempts,
        refinements_left=run.limits.solve.max_refinement_loops - refinements,
        budget_spent=run.budget_spent(),
    )


def _record(run: Run, opened: OpenPass, tried: Tried, number: int) -> None:
    """The attempt and its test run stand in the record, then the pass is closed."""
    success = tried.outcome is AttemptOutcome.APPLIED_AND_PASSED
    attempt_id = run.chronicle.attempt(
        AttemptRow(
            task_run_id=opened.row_id,
            attempt=number,
            prompt_tokens=tried.answer.prompt_tokens,
            completion_tokens=tried.answer.completion_tokens,
            latency_ms=tried.answer.latency_ms,
            raw_response=tried.answer.step.raw_response,
            patch_applied=bool(tried.commit),
            timestamp=run.chronicle.now(),
            outcome=tried.outcome,
            diff=tried.diff,
            edit_report=tried.result.reports if tried.result else (),
            call_id=tried.answer.call_id,
            commit_hash=tried.commit,
            error="" if success else tried.detail,
        )
    )
    if tried.tests is not None and tried.verdict is not None:
        lint, types = run.bench.inform() if success else (None, None)
        run.chronicle.validation(
            ValidationRow(
                attempt_id=attempt_id,
                success=success,
                test_output=tried.tests.output,
                lint_output=lint,
                type_check_output=types,
                failing_tests=tried.tests.failing,
                newly_failing=tried.verdict.newly_failing,
                task_id=opened.pass_id,
                kind="attempt",
                command=tried.tests.command,
                exit_code=tried.tests.returncode,
                timed_out=tried.tests.timed_out,
                tests_run=tried.tests.collected,
                tests_passed=tried.tests.passed,
                duration_ms=tried.tests.duration_ms,
                timestamp=run.chronicle.now(),
            )
        )
    detail = tried.detail if success else f"{tried.outcome.value.replace('_', ' ')}: {tried.detail}"
    run.session.for_pass(opened.pass_id).set_state(
        "attempt_summary", {"outcome": tried.outcome.value, "detail": tried.detail, "commit": tried.commit}
    )
    run.chronicle.close_pass(
        opened, PassEnd(success=success, detail=detail, diff=tried.diff or None), now=run.monotonic()
    )


def _accept(run: Run, tried: Tried) -> None:
    """The attempt's commit is the run's head, and the index knows what it changed.

    Rooms are read from the worktree, in which tests ran: it is put back first, so that they show the commit.
    """
    before = run.progress.head
    run.progress.head = tried.commit
    run.progress.accepted = tried.tests
    run.bench.checkout(tried.commit)
    changed = tuple(changed.path for changed in changed_paths(run.repo, before, tried.commit))
    if changed:
        run.context.refresh(run.root, changed)
