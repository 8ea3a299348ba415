"""Decides what follows a failed round: collects the facts for the recovery rules, and asks for a diagnosis."""

from collections.abc import Sequence

from msgspec.structs import replace

from clean_room_agent.artifacts.context import RefinementRequest
from clean_room_agent.artifacts.edits import EditCode
from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.names import ID_LENGTH, implement_pass, part_plan_pass
from clean_room_agent.artifacts.outcomes import ENDS_RUN, Action, AttemptOutcome
from clean_room_agent.artifacts.plans import FailureSignal, PlanStep
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.attempt_result import failure_signals
from clean_room_agent.execute.implement import text_fingerprint
from clean_room_agent.orchestrator.events import PassProgress
from clean_room_agent.orchestrator.journal import as_text
from clean_room_agent.orchestrator.recovery import (
    MOST_COMPARED,
    Advice,
    AttemptSeen,
    Situation,
    advised_by_rules,
    category_of,
    decide,
    doctor_to_ask,
    normalised,
)
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.run_config import Category
from clean_room_agent.orchestrator.steps.attempt import Attempt, StepJob
from clean_room_agent.orchestrator.steps.missing_context import is_new, not_shown_whole
from clean_room_agent.orchestrator.steps.rounds import StepHistory
from clean_room_agent.orchestrator.test_runs.results import evidence_of

ACTION, DIAGNOSIS = "action", "diagnosis"
"""Names of entries in the journal, under the pass of an attempt."""
NOT_RUN = "the test passed before, and does not run now"


def decide_next(run: Run, job: StepJob, history: StepHistory, pass_id: str) -> Action:
    """Decide what happens after the newest round, the best of which is `pass_id`. An earlier decision is kept, unless
    it ended the step or the run. The doctor's advice is added to that of the step and of the run.
    """
    at = _situation(run, job, history)
    inputs = (as_text(at.newest),)
    decided = run.journal.entry(pass_id, ACTION, Action, inputs)
    diagnosis = run.journal.entry(pass_id, DIAGNOSIS, Advice, inputs)
    action = decided.value or decide(at)
    if diagnosis.value is None and action.kind == "diagnose":
        run.recorder.recovery(pass_id, as_text(at), action)
        diagnosis.keep(advised_by_rules(at) or _ask_doctor(run, job, history.failed, at, pass_id))
    if diagnosis.value is not None:
        history.advice.append(diagnosis.value)
        run.progress.advice.append(diagnosis.value)
        at = replace(at, advice=diagnosis.value)
        action = decided.value or decide(at)
    run.recorder.recovery(pass_id, as_text(at), action)
    if action.kind not in ENDS_RUN:
        decided.note(action)
    return action


def _situation(run: Run, job: StepJob, history: StepHistory) -> Situation:
    stronger = run.models.stronger("reasoning")
    following = implement_pass(run.task.task_id, job.part.id, job.step.id, len(history.attempts) + 1)
    replans_left, hints = _replans_left(run, job, history.seen), run.task.hints.by(following)
    sets = 1 if replans_left else 1 + hints - history.hinted[0]
    budget = run.journal.budget
    return Situation(
        attempts=tuple(history.seen),
        max_attempts=sets * run.limits.solve.max_attempts,
        hinted=hints > history.hinted[-1],
        refinements_left=run.limits.solve.max_refinement_loops - len(history.refinements),
        unshown=_shown_in_part(run, job, history),
        divisible=is_divisible(job.step),
        depended_on=job.depended_on,
        kept=history.kept is not None,
        replans_left=replans_left,
        stronger=run.models.stronger("coding"),
        advised=tuple(history.advice),
        advised_in_run=tuple(run.progress.advice),
        strong_doctor=stronger[0] if stronger else "",
        budget_spent=budget.spent(),
        budget_share=round(budget.share(), 2),
        config=run.limits.recovery,
    )


def _shown_in_part(run: Run, job: StepJob, history: StepHistory) -> RefinementRequest | None:
    package = history.package
    if package is None:
        return None
    texts, _ = run.commits.tree().texts(tuple(target.path for target in job.step.target_files))
    sizes = {path: run.models.count(text, "coding") for path, text in texts.items()}
    request = not_shown_whole(job.step, package, sizes)
    return request if request and is_new(request, history.refinements) else None


def _replans_left(run: Run, job: StepJob, seen: Sequence[AttemptSeen]) -> int:
    """How often the part may be replanned. A model that could not plan it is not asked again unless it would learn
    something new from tests or the user.
    """
    if not job.plan_number:
        return 0
    hinted = run.task.hints.by(part_plan_pass(run.task.task_id, job.part.id, job.plan_number))
    if job.step.any_of_files and not hinted and not any(one.tree for one in seen):
        return 0
    return run.replans_left(job.part.id, job.plan_number)


def _ask_doctor(run: Run, job: StepJob, failed: Sequence[Attempt], at: Situation, pass_id: str) -> Advice:
    """A model's advice; if its answer cannot be read, to try again."""
    from clean_room_agent.execute.diagnose import SURE, diagnose

    tag = doctor_to_ask(at) or ""
    run.recorder.observer.notice(PassProgress(doing="asking why it fails"))
    try:
        said = diagnose(
            run.models,
            job.step,
            task=run.task.words,
            attempts=tuple(
                f"{seen.outcome.value.replace('_', ' ')}: {' '.join(seen.message.split())}"
                for seen in at.attempts
            ),
            edits=failed[-1].answer.step.edits,
            pass_id=pass_id,
            tag=tag,
        )
    except WindowExceeded:
        said = None
    by = f"model {tag}".rstrip()
    if said is None:
        return Advice(decision="retry_with_fix", by=by, confidence=0.0, strong=bool(tag))
    return Advice(
        decision=said.decision,
        by=by,
        hint=said.hint,
        category=said.category,
        confidence=said.confidence / SURE,
        strong=bool(tag),
    )


def attempt_seen(
    attempt: Attempt, action: Action, missing: RefinementRequest | None, *, candidates: int = 1
) -> AttemptSeen:
    """The facts about the attempt that `action` led to, the best of so many candidates. `missing` is what it shows to
    be missing, unless that was asked for before.
    """
    failing = _decisive_failures(attempt)
    messages = [test.message for test in failing]
    if attempt.outcome is AttemptOutcome.IMPORT_BROKEN:
        messages = [attempt.detail]
    reports = attempt.change.result.reports if attempt.change.result else ()
    return AttemptSeen(
        outcome=attempt.outcome_so_far,
        fingerprint=attempt.fingerprint,
        missing=missing,
        category=_failure_category(attempt, messages),
        message=("\n".join(messages) or attempt.detail)[:MOST_COMPARED],
        tree=text_fingerprint(attempt.change.diff),
        red=tuple(sorted(f"{test.name}: {normalised(test.message)}" for test in failing)),
        already_applied=any(report.code is EditCode.ALREADY_APPLIED for report in reports),
        drawn=replace(action.drawn(), varied=action.vary or candidates > 1),
        refined=action.kind == "refine",
        candidates=candidates,
    )


def signals_of(attempt: Attempt) -> tuple[FailureSignal, ...]:
    """What went wrong in an attempt that was not accepted, for the revision of the remaining steps."""
    if attempt.judgment is None or attempt.outcome is AttemptOutcome.IMPORT_BROKEN:
        return failure_signals(attempt.outcome, attempt.detail)
    tests = attempt.judgment.tests
    failing = {test.name: test for test in reversed(tests.failing)}
    newly = [
        failing.get(name) or FailingTest(name=name, message=NOT_RUN)
        for name in attempt.judgment.verdict.newly_failing
    ]
    messages = evidence_of(tests).messages if not tests.failing else ()
    return failure_signals(attempt.outcome_so_far, attempt.detail, newly_failing=newly, messages=messages)


def _failure_category(attempt: Attempt, messages: Sequence[str]) -> Category:
    if attempt.answer.endless:
        return "endless"
    change = attempt.change
    placed = change.result is not None and change.result.success
    if attempt.outcome is AttemptOutcome.REFUSED and change.untouched and placed:
        return "untouched"
    return category_of(attempt.outcome_so_far, messages, tested=attempt.judgment is not None)


def _decisive_failures(attempt: Attempt) -> Sequence[FailingTest]:
    """The newly failing tests; if there are none, all failing ones. None where what was broken is known without them."""
    if attempt.judgment is None or attempt.outcome is AttemptOutcome.IMPORT_BROKEN:
        return ()
    newly = frozenset(attempt.judgment.verdict.newly_failing)
    failing = attempt.judgment.tests.failing
    return [test for test in failing if test.name in newly] or failing


def is_divisible(step: PlanStep) -> bool:
    """Whether the step names several files that all have to change, or several symbols."""
    return not step.any_of_files and (len(step.target_files) > 1 or len(step.target_symbols) > 1)


def divided(step: PlanStep) -> tuple[PlanStep, PlanStep]:
    """The smallest deliverable of a divisible step, and the rest; both descriptions have the same goal."""
    names = [target.path for target in step.target_files]
    kept: PlanStep = step.model_copy(update={"target_files": step.target_files[:1], "target_symbols": ()})
    left = step.model_copy(update={"target_files": step.target_files[1:], "target_symbols": ()})
    if len(names) == 1:
        names = list(step.target_symbols)
        kept = step.model_copy(update={"target_symbols": step.target_symbols[:1]})
        left = step.model_copy(update={"target_symbols": step.target_symbols[1:]})
    first, *rest = names
    return (
        _renamed_step(kept, "-a", f"Of this, only {first} now; the rest follows later."),
        _renamed_step(left, "-b", f"Of this, {', '.join(rest)}."),
    )


def _renamed_step(step: PlanStep, suffix: str, words: str) -> PlanStep:
    name = step.id[: ID_LENGTH - len(suffix)] + suffix
    return step.model_copy(update={"id": name, "description": f"{step.description.rstrip()} {words}"})
