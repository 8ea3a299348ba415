"""A round: the candidates that are drawn from one prompt, each an attempt of its own, and the choice among them."""

from dataclasses import dataclass, field

from clean_room_agent.artifacts.ids import implement_pass
from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.artifacts.package import ContextPackage
from clean_room_agent.artifacts.tasks import RefinementRequest
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.git.history import has_commit
from clean_room_agent.orchestrator.attempt import Draw, StepJob, Tried, try_once
from clean_room_agent.orchestrator.attempt_record import Attempted, open_attempt, record_attempt
from clean_room_agent.orchestrator.candidates import Candidate, candidate, choose, why_not
from clean_room_agent.orchestrator.chronicle import PassEnd
from clean_room_agent.orchestrator.doctor import Advice
from clean_room_agent.orchestrator.events import PassProgress
from clean_room_agent.orchestrator.recovery import Action, AttemptSeen
from clean_room_agent.orchestrator.run import NOT_CHOSEN, Run
from clean_room_agent.orchestrator.setup import tell
from clean_room_agent.orchestrator.step_context import context_for

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

    room: ContextPackage | None = None
    """The context of the newest round; None before the first."""
    attempts: list[Tried] = field(default_factory=list)
    """All of them, by their numbers."""
    told: list[Tried] = field(default_factory=list)
    """The best of each round: later prompts tell of these."""
    seen: list[AttemptSeen] = field(default_factory=list)
    """The same, as decisions see them."""
    refinements: list[RefinementRequest] = field(default_factory=list)
    advice: list[Advice] = field(default_factory=list)
    kept: Round | None = None
    """The first whose best may stay and is unfinished: it is accepted only when no other does better."""


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
    drawn: list[Candidate] = []
    all_known = True
    while len(drawn) < size:
        pass_id, inputs = _pass_id(run, job, first + len(drawn)), _inputs(run, job, past)
        known = _known(run, pass_id, inputs)
        if drawn and known is None and run.budget_spent():
            break
        tried = _make(run, job, past, action, first, known)
        drawn.append(candidate(tried, first + len(drawn), run.progress.accepted))
        all_known = all_known and known is not None
        if drawn[-1].is_full or _cannot_be_drawn_better(tried):
            break
    run.journal.note(beginning[0], SIZE, int, len(drawn), beginning[1])
    chosen = choose(drawn)
    for one in drawn:
        if one.number != chosen.number:
            run.chronicle.event(_pass_id(run, job, one.number), NOT_CHOSEN, why_not(one, drawn))
    return Round(
        best=past.attempts[chosen.number - 1],
        pass_id=_pass_id(run, job, chosen.number),
        size=len(drawn),
        known=all_known,
    )


def _make(
    run: Run, job: StepJob, past: History, action: Action, first: int, known: Attempted | None
) -> Tried:
    """The next attempt, made now or `known`, stands in the history and in the record; the round began with `first`."""
    number = len(past.attempts) + 1
    pass_id, inputs = _pass_id(run, job, number), _inputs(run, job, past)
    opened = open_attempt(run, job, pass_id, number, action, known=known is not None)
    again = action.unchanged or number > first
    draw = Draw(action=action, told=() if action.unchanged else tuple(past.told), again=again)
    try:
        if past.room is None or number == first:
            past.room = context_for(run, job, past.room, pass_id, action, past.refinements)
        attempted = known or _attempt(run, job, past, past.room, draw, pass_id, inputs)
    except WindowExceeded as error:
        tell(run.chronicle, run.observer, run.task_id, f"{error.message} ({error.hint})")
        run.chronicle.close_pass(opened, PassEnd(success=False, detail=error.message), now=run.monotonic())
        raise
    past.attempts.append(attempted.tried)
    with run.interrupts.shield():
        record_attempt(run, opened, attempted, number)
    return attempted.tried


def _attempt(
    run: Run,
    job: StepJob,
    past: History,
    room: ContextPackage,
    draw: Draw,
    pass_id: str,
    inputs: tuple[str, ...],
) -> Attempted:
    run.observer.notice(PassProgress(doing="writing the edits"))
    tried = try_once(run, job, room, pass_id=pass_id, earlier=past.attempts, draw=draw)
    accepted = tried.outcome is AttemptOutcome.APPLIED_AND_PASSED
    lint, types = run.bench.inform() if accepted and tried.tests is not None else (None, None)
    attempted = Attempted(tried=tried, lint=lint, types=types)
    return run.journal.keep(pass_id, ATTEMPT, Attempted, attempted, inputs)


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
