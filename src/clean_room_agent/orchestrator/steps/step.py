"""A step: attempts until one passes, or until the recovery rule says to stop."""

from dataclasses import dataclass, replace

from clean_room_agent.artifacts.event_kinds import EventKind
from clean_room_agent.artifacts.ids import part_plan_pass
from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.artifacts.tasks import RefinementRequest
from clean_room_agent.artifacts.verdicts import MAX_MESSAGE, FailureSignal
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.git.history import changed_paths
from clean_room_agent.orchestrator.recovery.doctor import Advice, DoctorSeen
from clean_room_agent.orchestrator.recovery.rules import Action, decide
from clean_room_agent.orchestrator.recovery.situation import AttemptSeen, RunSeen, Situation, StepSeen
from clean_room_agent.orchestrator.resume.journal import as_text
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.steps.attempt import StepJob, Tried
from clean_room_agent.orchestrator.steps.candidates import candidate
from clean_room_agent.orchestrator.steps.diagnosis import DIAGNOSIS, diagnosis
from clean_room_agent.orchestrator.steps.failed_attempt import attempt_seen, signals_of
from clean_room_agent.orchestrator.steps.missing_context import is_new, not_shown_whole
from clean_room_agent.orchestrator.steps.reduction import is_divisible
from clean_room_agent.orchestrator.steps.rounds import History, Round, draw_round

ACTION = "action"
"""Name in the journal, under the pass of an attempt."""
FIRST = Action(kind="retry", rule="first attempt")
FINAL = frozenset({"stop", "skip", "needs_human"})
"""Actions that are decided anew when a run goes on: a limit may have been raised, or the user have said something."""
LATER_BETTER = "a later attempt did better"
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
    """The step is done and is the run's head, or the worktree is back at the head as it was."""
    past = History()
    action = FIRST
    while True:
        try:
            drawn = draw_round(run, job, past, action)
        except WindowExceeded as error:
            return _too_large(error) if past.kept is None else _accept(run, past, past.kept, known=False)
        tried = drawn.best
        passed = tried.outcome is AttemptOutcome.APPLIED_AND_PASSED
        if passed and not tried.unfinished:
            return _accept(run, past, drawn, known=drawn.known)
        if not drawn.known:
            with run.interrupts.shield():
                run.bench.checkout(run.progress.head)
        if passed:
            _keep_better(run, past, drawn)
        missing = tried.missing if tried.missing and is_new(tried.missing, past.refinements) else None
        past.told.append(tried)
        past.seen.append(attempt_seen(tried, action, missing, candidates=drawn.size))
        action = _decide(run, job, past, drawn.pass_id)
        run.session.for_pass(drawn.pass_id).set_state("retry_context", {"feedback": tried.feedback})
        wanted = action.missing or missing
        if action.kind == "refine" and wanted is not None:
            past.refinements.append(wanted)
        if action.kind not in ENDS_STEP:
            continue
        if past.kept is not None:
            return _accept(run, past, past.kept, known=drawn.known)
        return StepEnd(
            accepted=None,
            why=f"{tried.outcome.value}: {tried.detail}",
            cut_off=any(one.outcome is AttemptOutcome.TRUNCATED for one in past.seen),
            failures=signals_of(tried),
            action=action,
        )


def _decide(run: Run, job: StepJob, past: History, pass_id: str) -> Action:
    """What happens after the newest round, the best of which is `pass_id`. What was decided stands, unless it ended the
    step or the run for good.

    What the doctor says is added to the advice of the step, and to the run's.
    """
    step = _step_seen(run, job, past)
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
        run.recorder.recovery(pass_id, as_text(at), action)
        said = diagnosis(run, job, past.told, at, pass_id)
    if said is not None:
        past.advice.append(said)
        run.progress.advice.append(said)
        at = replace(at, step=replace(step, doctor=replace(step.doctor, advice=said)))
        action = known or decide(at)
    run.recorder.recovery(pass_id, as_text(at), action)
    if action.kind not in FINAL:
        run.journal.note(pass_id, ACTION, Action, action, inputs)
    return action


def _step_seen(run: Run, job: StepJob, past: History) -> StepSeen:
    stronger = run.models.stronger("reasoning")
    return StepSeen(
        attempts=tuple(past.seen),
        max_attempts=run.limits.solve.max_attempts,
        refinements_left=run.limits.solve.max_refinement_loops - len(past.refinements),
        unshown=_unshown(run, job, past),
        divisible=is_divisible(job.step),
        depended_on=job.depended_on,
        kept=past.kept is not None,
        replans_left=_replans_left(run, job, past.seen),
        stronger=run.models.stronger("coding"),
        doctor=DoctorSeen(
            step=tuple(past.advice), run=tuple(run.progress.advice), strong=stronger[0] if stronger else ""
        ),
    )


def _unshown(run: Run, job: StepJob, past: History) -> RefinementRequest | None:
    """The step's files that may still be shown whole."""
    if past.package is None:
        return None
    texts, _ = run.tree().texts(tuple(target.path for target in job.step.target_files))
    sizes = {path: run.models.count(text, "coding") for path, text in texts.items()}
    request = not_shown_whole(job.step, past.package, sizes)
    return request if request and is_new(request, past.refinements) else None


def _replans_left(run: Run, job: StepJob, seen: list[AttemptSeen]) -> int:
    """Who could not plan the part, and learns nothing of it from tests or from the user, is not asked again."""
    if not job.plan_number:
        return 0
    hinted = run.hints.by(part_plan_pass(run.task_id, job.part.id, job.plan_number))
    if job.step.any_of_files and not hinted and not any(one.tree for one in seen):
        return 0
    return run.replans_left(job.part.id, job.plan_number)


def _too_large(error: WindowExceeded) -> StepEnd:
    """The step is given up, because what it has to show does not fit; other steps may be smaller."""
    signal = FailureSignal(category="unknown", message=error.message[:MAX_MESSAGE], source="window")
    action = Action(kind="replan", rule="its prompt does not fit")
    return StepEnd(accepted=None, why=error.message, failures=(signal,), action=action)


def _keep_better(run: Run, past: History, drawn: Round) -> None:
    """Of the round's best, which may stay, and the one that was kept so far, that stays which turned more goal tests green."""
    if past.kept is None:
        past.kept = drawn
        return
    ours, theirs = (candidate(one.best, 0, run.progress.accepted).green for one in (drawn, past.kept))
    loser, why = (past.kept, LATER_BETTER) if ours > theirs else (drawn, "an earlier attempt did as well")
    run.recorder.event(loser.pass_id, EventKind.NOT_CHOSEN, why)
    if loser is past.kept:
        past.kept = drawn


def _accept(run: Run, past: History, drawn: Round, *, known: bool) -> StepEnd:
    """The commit of the round's best is the run's head, and the index knows what it changed; where all is `known`, as soon as
    that is needed.

    Contexts are read from the worktree, in which tests ran: it is put back first, so that they show the commit.
    """
    chosen = drawn.best
    with run.interrupts.shield():
        if past.kept is not None and past.kept is not drawn:
            run.recorder.event(past.kept.pass_id, EventKind.NOT_CHOSEN, LATER_BETTER)
        before = run.progress.head
        run.progress.head = chosen.commit
        run.progress.accepted = chosen.tests
        if not known:
            run.bench.checkout(chosen.commit)
            changed = tuple(changed.path for changed in changed_paths(run.repo, before, chosen.commit))
            run.context.refresh(run.root, changed, chosen.commit)
    return StepEnd(accepted=chosen)
