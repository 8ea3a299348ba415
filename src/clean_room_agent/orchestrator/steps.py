"""A step: attempts until one passes, or until the recovery rule says to stop."""

from dataclasses import dataclass, replace

from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.ids import implement_pass, part_plan_pass
from clean_room_agent.artifacts.outcomes import AttemptOutcome, PassType
from clean_room_agent.artifacts.package import ContextItem, ContextPackage
from clean_room_agent.artifacts.tasks import RefinementRequest, RoomRequest
from clean_room_agent.artifacts.verdicts import MAX_MESSAGE, FailureSignal
from clean_room_agent.db.raw.attempts import AttemptRow, ValidationRow
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.implement import (
    StepInstruction,
    raised_answer_tokens,
    step_tokens,
    usual_answer_tokens,
)
from clean_room_agent.git.history import changed_paths, has_commit
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.orchestrator.attempt import StepJob, Tried, instruction_for, try_once
from clean_room_agent.orchestrator.chronicle import OpenPass, PassEnd
from clean_room_agent.orchestrator.diagnosing import DIAGNOSIS, diagnosis
from clean_room_agent.orchestrator.doctor import Advice, DoctorSeen
from clean_room_agent.orchestrator.events import PassProgress
from clean_room_agent.orchestrator.journal import as_text
from clean_room_agent.orchestrator.kept_context import fits
from clean_room_agent.orchestrator.missing import is_new
from clean_room_agent.orchestrator.recovery import Action, AttemptSeen, RunSeen, Situation, StepSeen, decide
from clean_room_agent.orchestrator.reduced import is_divisible
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.seen import attempt_seen, signals_of
from clean_room_agent.orchestrator.setup import tell
from clean_room_agent.orchestrator.testing.evidence import evidence_of

ATTEMPT, ACTION = "attempt", "action"
"""Names in the journal, under the pass of an attempt."""
FIRST = Action(kind="retry", rule="first attempt")
FINAL = frozenset({"stop", "skip", "needs_human"})
"""Actions that are decided anew when a run goes on: a limit may have been raised, or the user have said something."""
ENDS_STEP = FINAL | {"replan", "reduce_scope"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnd:
    """How a step ended: with its accepted attempt, or with the reason why it was given up."""

    accepted: Tried | None
    why: str = ""
    cut_off: bool = False
    """Whether an answer was."""
    failures: tuple[FailureSignal, ...] = ()
    """What went wrong in the last attempt."""
    action: Action = FIRST
    """What was decided last."""


def run_step(run: Run, job: StepJob) -> StepEnd:
    """The step is done and is the run's head, or the worktree is back at the head as it was.

    An attempt that may stay and is unfinished is accepted only when no other does better.
    """
    room: ContextPackage | None = None
    tries: list[Tried] = []
    seen: list[AttemptSeen] = []
    refinements: list[RefinementRequest] = []
    advice: list[Advice] = []
    action = FIRST
    kept: Tried | None = None
    while True:
        number = len(tries) + 1
        pass_id = implement_pass(run.task_id, job.part.id, job.step.id, number)
        inputs = (run.progress.head, job.step.model_dump_json(), *(earlier.commit for earlier in tries))
        known = _known(run, pass_id, inputs)
        opened = _open(run, job, pass_id, number, action, known=known is not None)
        try:
            room = _room(run, job, room, pass_id, action, refinements)
            attempted = known or _attempt(run, job, room, tries, action, pass_id, inputs)
        except WindowExceeded as error:
            given_up = _too_large(run, opened, error)
            return given_up if kept is None else _fall_back(run, kept, known=False)
        tried = attempted.tried
        tries.append(tried)
        with run.interrupts.shield():
            _record(run, opened, attempted, number)
            passed = tried.outcome is AttemptOutcome.APPLIED_AND_PASSED
            if passed and not tried.unfinished:
                _accept(run, tried, known=known is not None)
                return StepEnd(accepted=tried)
            if known is None:
                run.bench.checkout(run.progress.head)
        kept = kept or (tried if passed else None)
        missing = tried.missing if tried.missing and is_new(tried.missing, refinements) else None
        seen.append(attempt_seen(tried, action, missing))
        step_seen = _step_seen(run, job, seen, len(refinements), kept=kept is not None)
        action = _decide(run, job, tries, pass_id, replace(step_seen, doctor=_doctor(run, advice)), advice)
        run.session.for_pass(pass_id).set_state("retry_context", {"feedback": tried.feedback})
        if action.kind == "refine" and missing is not None:
            refinements.append(missing)
        if action.kind in ENDS_STEP:
            if kept is not None:
                return _fall_back(run, kept, known=known is not None)
            return StepEnd(
                accepted=None,
                why=f"{tried.outcome.value}: {tried.detail}",
                cut_off=any(one.outcome is AttemptOutcome.TRUNCATED for one in seen),
                failures=signals_of(tried),
                action=action,
            )


def _fall_back(run: Run, kept: Tried, *, known: bool) -> StepEnd:
    """The attempt that was kept is accepted after all."""
    with run.interrupts.shield():
        _accept(run, kept, known=known)
    return StepEnd(accepted=kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted:
    """An attempt, with what informs about an accepted one and decides nothing."""

    tried: Tried
    lint: str | None = None
    types: str | None = None


def _known(run: Run, pass_id: str, inputs: tuple[str, ...]) -> Attempted | None:
    """The attempt as it was made before the run was resumed; None where git lost its commit in a power cut, or where no
    test could be run, which may be mended now.
    """
    known = run.journal.recall(pass_id, ATTEMPT, Attempted, inputs)
    if known is None or known.tried.outcome is AttemptOutcome.INFRASTRUCTURE:
        return None
    return None if known.tried.commit and not has_commit(run.repo, known.tried.commit) else known


def _attempt(
    run: Run,
    job: StepJob,
    room: ContextPackage,
    tries: list[Tried],
    action: Action,
    pass_id: str,
    inputs: tuple[str, ...],
) -> Attempted:
    run.observer.notice(PassProgress(doing="writing the edits"))
    tried = try_once(
        run,
        job,
        room,
        pass_id=pass_id,
        earlier=tries,
        action=action,
    )
    accepted = tried.outcome is AttemptOutcome.APPLIED_AND_PASSED
    lint, types = run.bench.inform() if accepted and tried.tests is not None else (None, None)
    attempted = Attempted(tried=tried, lint=lint, types=types)
    return run.journal.keep(pass_id, ATTEMPT, Attempted, attempted, inputs)


def _decide(
    run: Run, job: StepJob, tries: list[Tried], pass_id: str, step: StepSeen, advice: list[Advice]
) -> Action:
    """What happens after the newest attempt. What was decided stands, unless it ended the step or the run for good.

    What the doctor says is added to `advice`, of the step, and to the run's.
    """
    at = Situation(
        step=step,
        run=RunSeen(budget_spent=run.budget_spent(), budget_share=round(run.budget_share(), 2)),
        config=run.limits.recovery,
    )
    inputs = (as_text(step.newest),)
    known = run.journal.recall(pass_id, ACTION, Action, inputs)
    said = run.journal.recall(pass_id, DIAGNOSIS, Advice, inputs)
    action = known or decide(at)
    if said is None and action.kind == "diagnose":
        run.chronicle.recovery(pass_id, as_text(at), action)
        said = diagnosis(run, job, tries, at, pass_id)
    if said is not None:
        advice.append(said)
        run.progress.advice.append(said)
        at = replace(at, step=replace(step, doctor=replace(step.doctor, advice=said)))
        action = known or decide(at)
    run.chronicle.recovery(pass_id, as_text(at), action)
    if action.kind not in FINAL:
        run.journal.note(pass_id, ACTION, Action, action, inputs)
    return action


def _step_seen(run: Run, job: StepJob, seen: list[AttemptSeen], refinements: int, *, kept: bool) -> StepSeen:
    return StepSeen(
        attempts=tuple(seen),
        max_attempts=run.limits.solve.max_attempts,
        refinements_left=run.limits.solve.max_refinement_loops - refinements,
        divisible=is_divisible(job.step),
        depended_on=job.depended_on,
        kept=kept,
        replans_left=_replans_left(run, job, seen),
        stronger=run.models.stronger("coding"),
    )


def _doctor(run: Run, advice: list[Advice]) -> DoctorSeen:
    stronger = run.models.stronger("reasoning")
    return DoctorSeen(
        step=tuple(advice), run=tuple(run.progress.advice), strong=stronger[0] if stronger else ""
    )


def _replans_left(run: Run, job: StepJob, seen: list[AttemptSeen]) -> int:
    """Who could not plan the part, and learns nothing of it from tests or from the user, is not asked again."""
    if not job.plan_number:
        return 0
    hinted = run.hints.by(part_plan_pass(run.task_id, job.part.id, job.plan_number))
    if job.step.any_of_files and not hinted and not any(one.tree for one in seen):
        return 0
    return run.replans_left(job.part.id, job.plan_number)


def has_attempt(run: Run, job: StepJob) -> bool:
    """Whether the step was tried before the run was resumed."""
    return run.journal.has(implement_pass(run.task_id, job.part.id, job.step.id), ATTEMPT)


def _too_large(run: Run, opened: OpenPass, error: WindowExceeded) -> StepEnd:
    """The step is given up, because what it has to show does not fit; other steps may be smaller."""
    tell(run.chronicle, run.observer, run.task_id, f"{error.message} ({error.hint})")
    run.chronicle.close_pass(opened, PassEnd(success=False, detail=error.message), now=run.monotonic())
    signal = FailureSignal(category="unknown", message=error.message[:MAX_MESSAGE], source="window")
    action = Action(kind="replan", rule="its prompt does not fit")
    return StepEnd(accepted=None, why=error.message, failures=(signal,), action=action)


def request_for(run: Run, job: StepJob, pass_id: str) -> RoomRequest:
    """What the step's first attempt asks of retrieval."""
    accepted = run.progress.accepted
    evidence = evidence_of(accepted) if accepted is not None else Evidence()
    return step_request(run.models, pass_id, instruction_for(run, job), evidence)


def step_request(
    models: ModelClient, pass_id: str, instruction: StepInstruction, evidence: Evidence
) -> RoomRequest:
    """What a step asks of retrieval: with what its words need beyond the reserve kept free."""
    step = instruction.step
    return RoomRequest(
        pass_id=pass_id,
        mode="implement",
        role="coding",
        task=instruction.task,
        focus=step.description,
        files=tuple(target.path for target in step.target_files if target.role != "create"),
        symbols=step.target_symbols,
        evidence=evidence,
        extra_reserved=max(0, step_tokens(models, instruction) - models.window("coding").reserved),
    )


def _open(run: Run, job: StepJob, pass_id: str, number: int, action: Action, *, known: bool) -> OpenPass:
    at = run.progress
    run.hear_hints(pass_id, known=known)
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
        known=known,
        model=action.model,
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
    more = _for_long_answer(run) if action.more_room else 0
    again = replace(first, pass_id=pass_id, extra_reserved=first.extra_reserved + more)
    if action.kind != "refine":
        return run.context.retrieve(again) if _crowds_the_answer(run, room, again) else room
    run.observer.notice(PassProgress(doing="looking for what was missing"))
    before = {_shown_as(item) for item in room.items}
    refined = run.context.refine(refinements[-1], again)
    added = [item for item in refined.items if _shown_as(item) not in before]
    names = tuple(item.path if item.symbol is None else f"{item.path}::{item.symbol}" for item in added)
    run.chronicle.refinement(pass_id, refinements[-1], names)
    return refined


def _shown_as(item: ContextItem) -> tuple[str, str | None, str, str]:
    """A test that was named and is shown now has come in, and so has what was a signature."""
    return item.path, item.symbol, item.section, item.detail


def _for_long_answer(run: Run) -> int:
    """What an answer after one that was cut off takes beyond a usual one."""
    window = run.models.window("coding")
    return raised_answer_tokens(window) - usual_answer_tokens(window)


def _crowds_the_answer(run: Run, room: ContextPackage, again: RoomRequest) -> bool:
    """Whether the room holds more than `again` leaves for content; never so for one that was made for it."""
    return not fits(room, run.models.window("coding"), again.extra_reserved)


def _record(run: Run, opened: OpenPass, attempted: Attempted, number: int) -> None:
    """The attempt and its test run stand in the record, then the pass is closed."""
    tried = attempted.tried
    success = tried.outcome is AttemptOutcome.APPLIED_AND_PASSED
    run.chronicle.attempt(
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
        ),
        _judged_by(run, opened, attempted),
    )
    detail = tried.detail if success else f"{tried.outcome.value.replace('_', ' ')}: {tried.detail}"
    run.session.for_pass(opened.pass_id).set_state(
        "attempt_summary", {"outcome": tried.outcome.value, "detail": tried.detail, "commit": tried.commit}
    )
    run.chronicle.close_pass(
        opened, PassEnd(success=success, detail=detail, diff=tried.diff or None), now=run.monotonic()
    )


def _judged_by(run: Run, opened: OpenPass, attempted: Attempted) -> ValidationRow | None:
    """The test run of an attempt; None where none was made."""
    tried = attempted.tried
    if tried.tests is None or tried.verdict is None:
        return None
    return ValidationRow(
        attempt_id=None,
        success=tried.outcome is AttemptOutcome.APPLIED_AND_PASSED,
        test_output=tried.tests.output,
        lint_output=attempted.lint,
        type_check_output=attempted.types,
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


def _accept(run: Run, tried: Tried, *, known: bool) -> None:
    """The attempt's commit is the run's head, and the index knows what it changed; for a `known` one, as soon as that is
    needed.

    Rooms are read from the worktree, in which tests ran: it is put back first, so that they show the commit.
    """
    before = run.progress.head
    run.progress.head = tried.commit
    run.progress.accepted = tried.tests
    if known:
        return
    run.bench.checkout(tried.commit)
    changed = tuple(changed.path for changed in changed_paths(run.repo, before, tried.commit))
    run.context.refresh(run.root, changed, tried.commit)
