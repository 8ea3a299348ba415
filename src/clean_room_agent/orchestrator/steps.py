"""A step: attempts until one passes, or until the recovery rule says to stop."""

from dataclasses import dataclass, replace

from clean_room_agent.artifacts.ids import implement_pass, part_plan_pass
from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.artifacts.package import ContextPackage
from clean_room_agent.artifacts.tasks import RefinementRequest
from clean_room_agent.artifacts.verdicts import MAX_MESSAGE, FailureSignal
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.git.history import changed_paths, has_commit
from clean_room_agent.orchestrator.attempt import StepJob, Tried, try_once
from clean_room_agent.orchestrator.attempt_record import Attempted, open_attempt, record_attempt
from clean_room_agent.orchestrator.chronicle import OpenPass, PassEnd
from clean_room_agent.orchestrator.diagnosing import DIAGNOSIS, diagnosis
from clean_room_agent.orchestrator.doctor import Advice, DoctorSeen
from clean_room_agent.orchestrator.events import PassProgress
from clean_room_agent.orchestrator.journal import as_text
from clean_room_agent.orchestrator.missing import is_new
from clean_room_agent.orchestrator.recovery import Action, AttemptSeen, RunSeen, Situation, StepSeen, decide
from clean_room_agent.orchestrator.reduced import is_divisible
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.seen import attempt_seen, signals_of
from clean_room_agent.orchestrator.setup import tell
from clean_room_agent.orchestrator.step_context import context_for

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
        opened = open_attempt(run, job, pass_id, number, action, known=known is not None)
        try:
            room = context_for(run, job, room, pass_id, action, refinements)
            attempted = known or _attempt(run, job, room, tries, action, pass_id, inputs)
        except WindowExceeded as error:
            given_up = _too_large(run, opened, error)
            return given_up if kept is None else _fall_back(run, kept, known=False)
        tried = attempted.tried
        tries.append(tried)
        with run.interrupts.shield():
            record_attempt(run, opened, attempted, number)
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
