"""A round: the candidates that are drawn from one prompt, each an attempt of its own, and the choice among them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from clean_room_agent.artifacts.event_kinds import EventKind
from clean_room_agent.artifacts.ids import implement_pass
from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.artifacts.package import ContextPackage
from clean_room_agent.artifacts.tasks import RefinementRequest
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.implement import Implemented
from clean_room_agent.git.history import has_commit
from clean_room_agent.orchestrator.events import PassProgress
from clean_room_agent.orchestrator.recovery.doctor import Advice
from clean_room_agent.orchestrator.recovery.rules import Action
from clean_room_agent.orchestrator.recovery.situation import AttemptSeen
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.run_recorder import PassEnd
from clean_room_agent.orchestrator.setup import tell
from clean_room_agent.orchestrator.steps.attempt import Draw, StepJob, Tried, ask, judge, place, tell_unshown
from clean_room_agent.orchestrator.steps.attempt_record import Attempted, open_attempt, record_attempt
from clean_room_agent.orchestrator.steps.candidates import Candidate, candidate, choose, why_not
from clean_room_agent.orchestrator.steps.scaffold import NO_SCAFFOLD, Scaffold
from clean_room_agent.orchestrator.steps.scaffold_attempt import package_with, scaffold_for
from clean_room_agent.orchestrator.steps.step_context import context_for
from clean_room_agent.orchestrator.testing.results import TestRun
from clean_room_agent.orchestrator.testing.worktree_pool import at_a_time

ATTEMPT, SIZE = "attempt", "round"
"""Names in the journal: of an attempt under its pass, and of how many a round came to, under the pass of its first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A round that has ended."""

    best: Tried
    pass_id: str
    """Of the best."""
    size: int
    known: bool
    """Whether all of it was made before the run was resumed."""


@dataclass(kw_only=True)
class History:
    """What a step has been through."""

    package: ContextPackage | None = None
    """The context of the newest round, without the scaffold; None before the first."""
    scaffold: Scaffold | None = None
    """None as long as none was asked for."""
    attempts: list[Tried] = field(default_factory=list)
    """All of them, by their numbers."""
    told: list[Tried] = field(default_factory=list)
    """The best of each round: later prompts tell of these."""
    seen: list[AttemptSeen] = field(default_factory=list)
    """The same, as decisions see them."""
    refinements: list[RefinementRequest] = field(default_factory=list)
    advice: list[Advice] = field(default_factory=list)
    kept: Round | None = None
    """The best that may stay and is unfinished: it is accepted only when no later one does better."""


def has_attempt(run: Run, job: StepJob) -> bool:
    """Whether the step was tried before the run was resumed."""
    return run.journal.has(_pass_id(run, job, 1), ATTEMPT)


def draw_round(run: Run, job: StepJob, past: History, action: Action) -> Round:
    """`[solve] samples` more attempts stand in the history and in the record; fewer where one is all that a step can ask
    for, where another draw can help no more, or where a budget of the run is spent.

    Raises:
        WindowExceeded: the prompt does not fit; the pass that it was for is closed.
    """
    first = len(past.attempts) + 1
    beginning = _pass_id(run, job, first), _inputs(run, job, past)
    size = run.journal.recall(beginning[0], SIZE, int, beginning[1]) or run.limits.solve.samples
    parallel = run.bench.config.parallel
    drawn: list[Candidate] = []
    all_known, ends = True, False
    while len(drawn) < size:
        number = first + len(drawn)
        known = _known(run, _pass_id(run, job, number), _inputs(run, job, past))
        begins = len(drawn) % parallel == 0
        if begins and (ends or (drawn and known is None and run.budget_spent())):
            break
        # Those that are made at a time end there, also where a run was broken off among them.
        end = min(size, (len(drawn) // parallel + 1) * parallel)
        numbers = [number] if known else list(range(number, first + end))
        made = _make(run, job, past, action, first, numbers, known)
        drawn += [candidate(one, at, run.progress.accepted) for at, one in zip(numbers, made, strict=True)]
        all_known = all_known and known is not None
        ends = ends or any(one.is_full for one in drawn) or any(map(_cannot_be_drawn_better, made))
    run.journal.note(beginning[0], SIZE, int, len(drawn), beginning[1])
    chosen = choose(drawn)
    for one in drawn:
        if one.number != chosen.number:
            run.recorder.event(_pass_id(run, job, one.number), EventKind.NOT_CHOSEN, why_not(one, drawn))
    return Round(
        best=past.attempts[chosen.number - 1],
        pass_id=_pass_id(run, job, chosen.number),
        size=len(drawn),
        known=all_known,
    )


def _make(
    run: Run,
    job: StepJob,
    past: History,
    action: Action,
    first: int,
    numbers: Sequence[int],
    known: Attempted | None,
) -> list[Tried]:
    """The attempts of these numbers, made now at a time, or the one that is `known`, stand in the history and in the
    record; the round began with `first`.
    """
    ids = [_pass_id(run, job, number) for number in numbers]
    opened = [
        open_attempt(run, job, pass_id, number, action, known=known is not None)
        for pass_id, number in zip(ids, numbers, strict=True)
    ]
    told = () if action.unchanged else tuple(past.told)
    draws = [Draw(action=action, told=told, again=action.unchanged or number > first) for number in numbers]
    try:
        if past.package is None or numbers[0] == first:
            past.package = context_for(run, job, past.package, ids[0], action, past.refinements)
        if past.scaffold is None:
            past.scaffold = scaffold_for(
                run, job, past.package, action, pass_id=ids[0], earlier=past.attempts, known=known is not None
            )
        job = replace(job, scaffold=past.scaffold or NO_SCAFFOLD)
        package = package_with(run, job.scaffold, past.package)
        placed = [] if known else _place(run, job, past, package, draws, ids)
    except WindowExceeded as error:
        tell(run.recorder, run.observer, run.task_id, f"{error.message} ({error.hint})")
        for one in opened:
            run.recorder.close_pass(one, PassEnd(success=False, detail=error.message), now=run.monotonic())
        raise
    tests = {} if known else _tests_of(run, past, placed, draws)
    for index, (one, number) in enumerate(zip(opened, numbers, strict=True)):
        attempted = known or _attempt(run, job, past, package, draws[index], placed[index], tests, ids[index])
        past.attempts.append(attempted.tried)
        with run.interrupts.shield():
            record_attempt(run, one, attempted, number)
    return past.attempts[-len(numbers) :]


def _place(
    run: Run, job: StepJob, past: History, package: ContextPackage, draws: Sequence[Draw], ids: Sequence[str]
) -> list[Tried]:
    """The answers are drawn at a time, and placed in their order."""
    count = len(past.attempts)
    for pass_id in ids:
        tell_unshown(run, job, package, pass_id, first=not count and pass_id == ids[0])
    run.observer.notice(PassProgress(doing="writing the edits"))

    def drawn(index: int) -> Implemented:
        return ask(run, job, package, pass_id=ids[index], number=count + index + 1, draw=draws[index])

    answers = [drawn(0)] if len(ids) == 1 else at_a_time(drawn, len(ids))
    placed: list[Tried] = []
    for pass_id, answer in zip(ids, answers, strict=True):
        placed.append(place(run, job, package, answer, pass_id=pass_id, earlier=[*past.attempts, *placed]))
    return placed


def _tests_of(run: Run, past: History, placed: Sequence[Tried], draws: Sequence[Draw]) -> dict[str, TestRun]:
    """The test runs of what waits for them, by the diff; what has the same tree as an earlier candidate is not tested."""
    waiting: dict[str, str] = {}
    for one, draw in zip(placed, draws, strict=True):
        if one.waits and _same_tree(past, draw, one) is None:
            waiting.setdefault(one.diff, one.commit)
    runs = run.benches.run_step_at(tuple(waiting.values()))
    return dict(zip(waiting, runs, strict=True))


def _attempt(
    run: Run,
    job: StepJob,
    past: History,
    package: ContextPackage,
    draw: Draw,
    placed: Tried,
    tests: Mapping[str, TestRun],
    pass_id: str,
) -> Attempted:
    tried, lint, types = placed, None, None
    same = _same_tree(past, draw, placed)
    if same is not None:
        tried = replace(same, answer=placed.answer, fingerprint=placed.fingerprint, result=placed.result)
    elif placed.waits:
        tried = judge(run, job, package, placed, tests[placed.diff])
        if tried.outcome is AttemptOutcome.APPLIED_AND_PASSED:
            lint, types = run.bench.inform(tried.commit)
    attempted = Attempted(tried=tried, lint=lint, types=types)
    return run.journal.keep(pass_id, ATTEMPT, Attempted, attempted, _inputs(run, job, past))


def _same_tree(past: History, draw: Draw, placed: Tried) -> Tried | None:
    """The earlier candidate whose tests count for `placed` too; None where it is to be tested itself."""
    if not (draw.again and placed.waits):
        return None
    judged = (one for one in past.attempts if one.tests and one.outcome is not AttemptOutcome.INFRASTRUCTURE)
    return next((one for one in judged if one.diff == placed.diff), None)


def _known(run: Run, pass_id: str, inputs: tuple[str, ...]) -> Attempted | None:
    """The attempt as it was made before the run was resumed; None where git lost its commit in a power cut, or where no
    test could be run, which may be mended now.
    """
    known = run.journal.recall(pass_id, ATTEMPT, Attempted, inputs)
    if known is None or known.tried.outcome is AttemptOutcome.INFRASTRUCTURE:
        return None
    return None if known.tried.commit and not has_commit(run.repo, known.tried.commit) else known


def _cannot_be_drawn_better(tried: Tried) -> bool:
    """Whether the failure lies in what all draws from the prompt share: the space for an answer, a model that does not
    come to an end, tests that do not run.
    """
    stuck = {AttemptOutcome.TRUNCATED, AttemptOutcome.INFRASTRUCTURE}
    return tried.outcome in stuck or tried.answer.endless


def _pass_id(run: Run, job: StepJob, number: int) -> str:
    return implement_pass(run.task_id, job.part.id, job.step.id, number)


def _inputs(run: Run, job: StepJob, past: History) -> tuple[str, ...]:
    """What the next attempt is made from."""
    return (run.progress.head, job.step.model_dump_json(), *(earlier.commit for earlier in past.attempts))
