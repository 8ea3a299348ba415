"""Carries out a step: attempts until one passes, or until the recovery rules say to stop."""

from msgspec import Struct

from clean_room_agent.artifacts.outcomes import AttemptOutcome, EventKind
from clean_room_agent.artifacts.plans import MAX_MESSAGE, FailureSignal
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.orchestrator.recovery_facts import ENDS_RUN, Action
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.steps.attempt import Attempt, StepJob
from clean_room_agent.orchestrator.steps.checked_attempt import candidate
from clean_room_agent.orchestrator.steps.missing_context import is_new
from clean_room_agent.orchestrator.steps.rounds import History, Round, draw_round

FIRST = Action(kind="retry", rule="first attempt")
ENDS_STEP = ENDS_RUN | {"replan", "reduce_scope"}
LATER_BETTER = "a later attempt did better"


class StepEnd(Struct, frozen=True, kw_only=True):
    """How a step ended: with an accepted attempt, or with the reason why it was given up."""

    accepted: Attempt | None
    why: str = ""
    cut_off: bool = False
    """Whether an answer was cut off."""
    failures: tuple[FailureSignal, ...] = ()
    """What went wrong in the last attempt."""
    action: Action = FIRST
    """The last decision."""


def run_step(run: Run, job: StepJob) -> StepEnd:
    """Carry out the step; afterwards its commit is the run's head, or head and worktree are as before."""
    history = History()
    action = FIRST
    while True:
        try:
            drawn = draw_round(run, job, history, action)
        except WindowExceeded as error:
            return _too_large(error) if history.kept is None else _accept(run, history, history.kept)
        attempt = drawn.best
        if attempt.passed and not attempt.unfinished:
            return _accept(run, history, drawn)
        if not drawn.known:
            with run.journal.interrupts.shield():
                run.tests.checkout(run.commits.head)
        if attempt.passed:
            _keep_better(run, history, drawn)
        from clean_room_agent.orchestrator.steps.after_failure import attempt_seen, decide_next, signals_of

        missing = (
            attempt.missing if attempt.missing and is_new(attempt.missing, history.refinements) else None
        )
        history.shown.failed.append(attempt)
        history.seen.append(attempt_seen(attempt, action, missing, candidates=drawn.size))
        action = decide_next(run, job, history, drawn.pass_id)
        wanted = action.missing or missing
        if action.kind == "refine" and wanted is not None:
            history.refinements.append(wanted)
        if action.kind not in ENDS_STEP:
            continue
        if history.kept is not None:
            return _accept(run, history, history.kept)
        return StepEnd(
            accepted=None,
            why=f"{attempt.outcome.value}: {attempt.detail}",
            cut_off=any(one.outcome is AttemptOutcome.TRUNCATED for one in history.seen),
            failures=signals_of(attempt),
            action=action,
        )


def _too_large(error: WindowExceeded) -> StepEnd:
    """The end of a step whose prompt cannot fit; other steps may be smaller."""
    signal = FailureSignal(category="unknown", message=error.message[:MAX_MESSAGE], source="window")
    action = Action(kind="replan", rule="its prompt does not fit")
    return StepEnd(accepted=None, why=error.message, failures=(signal,), action=action)


def _keep_better(run: Run, history: History, drawn: Round) -> None:
    """Of the round's best, which may stay, and the one kept so far, keep the one that turned more goal tests green."""
    if history.kept is None:
        history.kept = drawn
        return
    ours, theirs = (candidate(one.best, 0, run.progress.accepted).green for one in (drawn, history.kept))
    loser, why = (history.kept, LATER_BETTER) if ours > theirs else (drawn, "an earlier attempt did as well")
    run.recorder.event(loser.pass_id, EventKind.NOT_CHOSEN, why)
    if loser is history.kept:
        history.kept = drawn


def _accept(run: Run, history: History, drawn: Round) -> StepEnd:
    """Make the commit of the round's best the run's head. Worktree and index follow when the next context is made."""
    chosen = drawn.best
    assert chosen.judgment is not None, "only what passed its tests is accepted"
    with run.journal.interrupts.shield():
        if history.kept is not None and history.kept is not drawn:
            run.recorder.event(history.kept.pass_id, EventKind.NOT_CHOSEN, LATER_BETTER)
        run.commits.head = chosen.change.commit
        run.progress.accepted = chosen.judgment.tests
    return StepEnd(accepted=chosen)
