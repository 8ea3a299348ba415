"""A round of attempts: from one context and one prompt, one or more candidates are sampled and tested, and the best is
chosen.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextItem, ContextPackage, ContextRequest, RefinementRequest
from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.names import implement_pass
from clean_room_agent.artifacts.outcomes import Action, AttemptOutcome, EventKind, PassType
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.implement import (
    Implemented,
    StepInstruction,
    raised_answer_tokens,
    step_tokens,
    usual_answer_tokens,
)
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.orchestrator.events import CandidateDrawn, PassProgress
from clean_room_agent.orchestrator.journal import JournalEntry, Pass
from clean_room_agent.orchestrator.run import Run, fits
from clean_room_agent.orchestrator.run_recorder import PassEnd, PassHeader
from clean_room_agent.orchestrator.steps.attempt import (
    Attempt,
    StepJob,
    ask,
    instruction_for,
    note_unshown,
    place,
)
from clean_room_agent.orchestrator.steps.checked_attempt import (
    CheckedAttempt,
    RankedAttempt,
    candidate,
    choose,
    judge,
    record_attempt,
    why_not,
)
from clean_room_agent.orchestrator.task_evidence import task_evidence
from clean_room_agent.orchestrator.test_runs.results import TestRun
from clean_room_agent.orchestrator.test_runs.worktrees import at_a_time

if TYPE_CHECKING:  # of a step that fails
    from clean_room_agent.orchestrator.recovery import Advice, AttemptSeen

ATTEMPT, SIZE = "attempt", "round"
"""Names of entries in the journal: an attempt, under its pass, and the size of a round, under the pass of its first
attempt.
"""


def step_request(
    models: ModelClient, pass_id: str, instruction: StepInstruction, evidence: Evidence
) -> ContextRequest:
    """What a step asks of retrieval, with space kept free for what its text needs beyond the reserve."""
    step = instruction.step
    return ContextRequest(
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


def context_for(
    run: Run,
    job: StepJob,
    package: ContextPackage | None,
    pass_id: str,
    action: Action,
    refinements: list[RefinementRequest],
) -> ContextPackage:
    """The first attempt's context; for a retry the same, one with what was missing added, or a smaller one."""
    evidence = task_evidence(run, run.progress.accepted)
    first_id = implement_pass(run.task.task_id, job.part.id, job.step.id)
    first = step_request(run.models, first_id, instruction_for(run, job), evidence)
    if package is None:
        run.recorder.observer.notice(PassProgress(doing="looking for what it needs"))
        return run.context.retrieve(first)
    window = run.models.window("coding")
    # What an answer after a truncated one gets in addition to the usual tokens.
    more = raised_answer_tokens(window) - usual_answer_tokens(window) if action.more_room else 0
    again = replace(first, pass_id=pass_id, extra_reserved=first.extra_reserved + more)
    if action.kind != "refine":
        return package if fits(package, window, again.extra_reserved) else run.context.retrieve(again)
    run.recorder.observer.notice(PassProgress(doing="looking for what was missing"))
    before = {_shown_as(item) for item in package.items}
    refined = run.context.refine(refinements[-1], again)
    added = [item for item in refined.items if _shown_as(item) not in before]
    names = tuple(item.path if item.symbol is None else f"{item.path}::{item.symbol}" for item in added)
    run.recorder.refinement(pass_id, refinements[-1], names)
    return refined


def _shown_as(item: ContextItem) -> tuple[str, str | None, str, str]:
    """Identifies an item and how much of it is shown: a signature that is now shown whole counts as added."""
    return item.path, item.symbol, item.section, item.detail


class Round(Struct, frozen=True, kw_only=True):
    """A round that has ended."""

    best: Attempt
    pass_id: str
    """Of the best attempt."""
    size: int
    known: bool
    """Whether all its attempts were made before the run was resumed."""


class StepHistory(Struct, kw_only=True):
    """The attempts at a step so far."""

    package: ContextPackage | None = None
    """The context of the newest round; None before the first."""
    failed: list[Attempt] = field(default_factory=list)
    """The best of each round so far."""
    attempts: list[Attempt] = field(default_factory=list)
    """All attempts, by their numbers."""
    hinted: list[int] = field(default_factory=list)
    """How many hints of the user's each attempt was shown."""
    seen: "list[AttemptSeen]" = field(default_factory=list)
    """The facts about the best of each round."""
    refinements: list[RefinementRequest] = field(default_factory=list)
    advice: "list[Advice]" = field(default_factory=list)
    kept: Round | None = None
    """The best attempt that may stay but is unfinished; it is accepted only if no later one does better."""


def has_attempt(run: Run, job: StepJob) -> bool:
    """Whether the step was tried before the run was resumed."""
    return run.journal.has(_pass_id(run, job, 1), ATTEMPT)


def draw_round(run: Run, job: StepJob, history: StepHistory, action: Action) -> Round:
    """Make `[solve] samples` more attempts, and add them to the history and the record; fewer if only one can be asked
    for, if another sample cannot help, or if a budget of the run is spent.

    Raises:
        WindowExceeded: the prompt does not fit; its pass is closed.
    """
    first = len(history.attempts) + 1
    entry = run.journal.entry(_pass_id(run, job, first), SIZE, int, _attempt_inputs(run, job, history))
    size = entry.value or run.limits.solve.samples
    parallel = run.tests.config.parallel
    drawn: list[RankedAttempt] = []
    all_known, ends = True, False
    while len(drawn) < size:
        number = first + len(drawn)
        known = _attempt_entry(run, job, history, number).value is not None
        begins = len(drawn) % parallel == 0
        if begins and (ends or (drawn and not known and run.journal.budget.spent())):
            break
        # A batch ends there, even if the run was interrupted within it.
        end = min(size, (len(drawn) // parallel + 1) * parallel)
        numbers = [number] if known else list(range(number, first + end))
        made = _make_attempts(run, job, history, action, first, numbers)
        drawn += [candidate(one, at, run.progress.accepted) for at, one in zip(numbers, made, strict=True)]
        all_known = all_known and known
        ends = ends or any(one.is_full for one in drawn) or any(map(_cannot_be_drawn_better, made))
    entry.note(len(drawn))
    chosen = choose(drawn)
    for one in drawn:
        if one.number != chosen.number:
            run.recorder.event(_pass_id(run, job, one.number), EventKind.NOT_CHOSEN, why_not(one, drawn))
    return Round(
        best=history.attempts[chosen.number - 1],
        pass_id=_pass_id(run, job, chosen.number),
        size=len(drawn),
        known=all_known,
    )


def _make_attempts(
    run: Run, job: StepJob, history: StepHistory, action: Action, first: int, numbers: Sequence[int]
) -> list[Attempt]:
    """Add the attempts with these numbers to the history and the record: made now, concurrently, or the one that is
    known from before. The round began with `first`.
    """
    entries = [_attempt_entry(run, job, history, number) for number in numbers]
    passes = [
        _open_attempt_pass(run, job, action, number, entry)
        for number, entry in zip(numbers, entries, strict=True)
    ]
    ids = [_pass_id(run, job, number) for number in numbers]
    known = entries[0].value
    again = [action.unchanged or number > first for number in numbers]
    try:
        if history.package is None or numbers[0] == first:
            history.package = context_for(run, job, history.package, ids[0], action, history.refinements)
        package = history.package
        placed = [] if known else _draw_attempts(run, job, history, package, action, again, ids)
    except WindowExceeded as error:
        run.recorder.note(f"{error.message} ({error.hint})")
        for current in passes:
            current.close(PassEnd(success=False, detail=error.message))
        raise
    tests = {} if known else _tests_of(run, history, placed, again)
    for index, (current, number) in enumerate(zip(passes, numbers, strict=True)):
        checked = known
        if checked is None:
            made = _check_attempt(run, job, history, package, placed[index], tests, again=again[index])
            # Kept as made after the earlier ones of this batch, which had not ended when its pass was opened.
            checked = _attempt_entry(run, job, history, number).keep(made)
        history.attempts.append(checked.attempt)
        history.hinted.append(run.task.hints.shown)
        with run.journal.interrupts.shield():
            record_attempt(run, current, checked, number)
    return history.attempts[-len(numbers) :]


def _open_attempt_pass(
    run: Run, job: StepJob, action: Action, number: int, entry: JournalEntry[CheckedAttempt]
) -> Pass:
    plan = run.progress.plan
    count = f"step {len(plan.done) + len(plan.failed) + 1}/{max(plan.total_steps, 1)}"
    title = f"{count} {job.part.id}/{job.step.id}" + (f", attempt {number}" if number > 1 else "")
    header = PassHeader(
        kind=PassType.IMPLEMENT,
        pass_id=_pass_id(run, job, number),
        title=title,
        part_id=job.part.id,
        step_id=job.step.id,
        model=action.model,
    )
    return run.journal.open_pass(header, entry)


def _draw_attempts(
    run: Run,
    job: StepJob,
    history: StepHistory,
    package: ContextPackage,
    action: Action,
    again: Sequence[bool],
    ids: Sequence[str],
) -> list[Attempt]:
    """Ask for the answers concurrently, and turn them into attempts in order."""
    count = len(history.attempts)
    shown = () if action.unchanged else tuple(history.failed)
    for pass_id in ids:
        note_unshown(run, job, package, pass_id, first=not count and pass_id == ids[0])
    run.recorder.observer.notice(PassProgress(doing="writing the edits"))

    def drawn(index: int) -> Implemented:
        number = count + index + 1
        return ask(
            run, job, package, action, pass_id=ids[index], number=number, shown=shown, again=again[index]
        )

    answers = [drawn(0)] if len(ids) == 1 else at_a_time(drawn, len(ids))
    placed: list[Attempt] = []
    for pass_id, answer in zip(ids, answers, strict=True):
        one = place(run, job, package, answer, pass_id=pass_id, earlier=[*history.attempts, *placed])
        placed.append(one)
        if one.change.diff:
            number = count + len(placed)
            run.recorder.observer.notice(CandidateDrawn(pass_id=pass_id, number=number, diff=one.change.diff))
    return placed


def _tests_of(
    run: Run, history: StepHistory, placed: Sequence[Attempt], again: Sequence[bool]
) -> dict[str, TestRun]:
    """The test runs of the attempts that need one, by diff; one with the same tree as an earlier candidate is not
    tested.
    """
    waiting: dict[str, str] = {}
    for one, is_again in zip(placed, again, strict=True):
        if one.awaits_tests and _same_tree(history, one, again=is_again) is None:
            waiting.setdefault(one.change.diff, one.change.commit)
    runs = run.worktrees.run_step_at(tuple(waiting.values()))
    return dict(zip(waiting, runs, strict=True))


def _check_attempt(
    run: Run,
    job: StepJob,
    history: StepHistory,
    package: ContextPackage,
    placed: Attempt,
    tests: Mapping[str, TestRun],
    *,
    again: bool,
) -> CheckedAttempt:
    same = _same_tree(history, placed, again=again)
    if same is not None:
        change = replace(same.change, result=placed.change.result)
        return CheckedAttempt(attempt=replace(same, answer=placed.answer, change=change))
    if not placed.awaits_tests:
        return CheckedAttempt(attempt=placed)
    attempt = judge(run, job, package, placed, tests[placed.change.diff])
    lint, types = run.tests.inform(attempt.change.commit) if attempt.passed else (None, None)
    return CheckedAttempt(attempt=attempt, lint=lint, types=types)


def _same_tree(history: StepHistory, placed: Attempt, *, again: bool) -> Attempt | None:
    """The earlier candidate whose tests also count for `placed`, which was sampled `again` from its prompt; None if it has to be
    tested itself.
    """
    if not (again and placed.awaits_tests):
        return None
    judged = (
        one for one in history.attempts if one.judgment and one.outcome is not AttemptOutcome.INFRASTRUCTURE
    )
    return next((one for one in judged if one.change.diff == placed.change.diff), None)


def _attempt_entry(run: Run, job: StepJob, history: StepHistory, number: int) -> JournalEntry[CheckedAttempt]:
    """The journal's entry for the attempt, with the value from before the run was resumed; without it if git lost its
    commit in a power cut, or no test could be run, which may be fixed now.
    """
    pass_id = _pass_id(run, job, number)
    entry = run.journal.entry(pass_id, ATTEMPT, CheckedAttempt, _attempt_inputs(run, job, history))
    if entry.value is not None:
        attempt = entry.value.attempt
        lost = attempt.change.commit and not run.commits.exists(attempt.change.commit)
        if lost or attempt.outcome is AttemptOutcome.INFRASTRUCTURE:
            entry.value = None
    return entry


def _cannot_be_drawn_better(attempt: Attempt) -> bool:
    """Whether the failure would affect all samples from the prompt: too little space for the answer, a model that does
    not stop, tests that do not run.
    """
    stuck = {AttemptOutcome.TRUNCATED, AttemptOutcome.INFRASTRUCTURE}
    return attempt.outcome in stuck or attempt.answer.endless


def _pass_id(run: Run, job: StepJob, number: int) -> str:
    return implement_pass(run.task.task_id, job.part.id, job.step.id, number)


def _attempt_inputs(run: Run, job: StepJob, history: StepHistory) -> tuple[str, ...]:
    earlier = (attempt.change.commit for attempt in history.attempts)
    return (run.commits.head, job.step.model_dump_json(), *earlier)
