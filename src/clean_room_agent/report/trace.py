"""Reads a task from the record: its run, its passes in order, and what belongs to each."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from clean_room_agent.artifacts.model_calls import CallSummary
from clean_room_agent.artifacts.names import attempt_of, attempts_up_to, parse_call, relative_pass
from clean_room_agent.artifacts.outcomes import EventKind, PassType
from clean_room_agent.db.raw.calls import list_call_summaries
from clean_room_agent.db.raw.passes import (
    AttemptRow,
    DecisionRow,
    PassRow,
    PlanDecisionRow,
    RecoveryRow,
    RefinementRow,
    TaskRunRow,
    ValidationRow,
    list_attempts,
    list_decisions,
    list_passes,
    list_plan_decisions,
    list_recovery_decisions,
    list_refinements,
    list_task_runs,
    list_validations,
)
from clean_room_agent.db.raw.runs import (
    EventRow,
    OrchestratorRunRow,
    TimeSpanRow,
    get_orchestrator_run,
    list_events,
    list_time_spans,
)
from clean_room_agent.db.rows import Connection, moment
from clean_room_agent.errors import UsageError
from clean_room_agent.llm.probes import PROBE_NAME


class PassTrace(Struct, frozen=True, kw_only=True):
    """One pass, with all that the record holds under its id."""

    place: str
    """Its name after `RUN/`: `meta_plan`, `part/step/1`, or else its id without the task; "" if it is the task."""
    row: TaskRunRow
    order: PassRow | None
    """Its place in the run; None for a single pass without a run."""
    calls: tuple[CallSummary, ...]
    decisions: tuple[DecisionRow, ...]
    attempts: tuple[AttemptRow, ...]
    tests: tuple[ValidationRow, ...]
    refinements: tuple[RefinementRow, ...]
    recoveries: tuple[RecoveryRow, ...]
    plan_decisions: tuple[PlanDecisionRow, ...] = ()
    context_of: str = ""
    """The pass, without its task, whose context it was shown; "" if it had its own, or that of an earlier attempt."""
    not_chosen: str = ""
    """What another attempt did better; "" if it was not compared, or is the best."""
    scaffold: str = ""
    """The outcome of the scaffold that was asked for in it; "" if there was none."""

    @property
    def pass_id(self) -> str:
        """The id under which the record keeps it."""
        return self.row.task_id

    def is_accepted(self, attempt: AttemptRow) -> bool:
        """Whether the change of the attempt, one of this pass, is in the result."""
        passed = attempt.outcome == "applied_and_passed" and not self.not_chosen
        # A pass may have several that passed, of which one was chosen.
        return passed and (len(self.attempts) == 1 or attempt.diff == self.row.final_diff)


class RunTrace(Struct, frozen=True, kw_only=True):
    """One task."""

    task_id: str
    run: OrchestratorRunRow | None
    """None for a single pass (a retrieval)."""
    passes: tuple[PassTrace, ...]
    """In the order in which they began."""
    tests: tuple[ValidationRow, ...]
    """Every test run of the task, by id."""
    events: tuple[EventRow, ...]
    times: tuple[TimeSpanRow, ...] = ()
    """What its time was spent on, apart from calls; empty if an older version recorded it."""

    def accepted(self) -> tuple[tuple[PassTrace, AttemptRow], ...]:
        """The attempts whose change is in the result, oldest first."""
        return tuple(
            (entry, attempt)
            for entry in self.passes
            for attempt in entry.attempts
            if entry.is_accepted(attempt)
        )


class Chosen(Struct, frozen=True, kw_only=True):
    """The part of a task that an address names."""

    place: str
    passes: tuple[PassTrace, ...]
    call: CallSummary | None = None

    @property
    def calls(self) -> tuple[CallSummary, ...]:
        """The chosen calls, without probes of the server's window unless one is chosen explicitly."""
        if self.call is not None:
            return (self.call,)
        return tuple(
            call for entry in self.passes for call in entry.calls if call.site.call_type != PROBE_NAME
        )


def read_trace(conn: Connection, task_id: str) -> RunTrace:
    """Everything that the record has of a task, except the texts of its calls."""
    run = get_orchestrator_run(conn, task_id)
    order = {} if run is None else {entry.task_run_id: entry for entry in list_passes(conn, run.id)}
    calls, decisions = list_call_summaries(conn, task_id), list_decisions(conn, task_id)
    attempts, tests = list_attempts(conn, task_id), list_validations(conn, task_id)
    refinements, recoveries = list_refinements(conn, task_id), list_recovery_decisions(conn, task_id)
    events, planned = list_events(conn, task_id), list_plan_decisions(conn, task_id)
    shared = {event.task_id: event.detail for event in events if event.kind == EventKind.CONTEXT_OF}
    lost = {event.task_id: event.detail for event in events if event.kind == EventKind.NOT_CHOSEN}
    scaffolds = {
        event.task_id: event.detail
        for event in events
        if event.kind in {EventKind.SCAFFOLD, EventKind.SCAFFOLD_DROPPED}
    }
    passes = []
    for row in list_task_runs(conn, task_id):
        mine = tuple(attempt for attempt in attempts if attempt.task_run_id == row.id)
        passes.append(
            PassTrace(
                place=_place(row.task_id, order.get(row.id), mine),
                row=row,
                order=order.get(row.id),
                calls=tuple(call for call in calls if call.site.pass_id == row.task_id),
                decisions=tuple(entry for entry in decisions if entry.task_id == row.task_id),
                attempts=mine,
                tests=tuple(entry for entry in tests if entry.task_id == row.task_id),
                refinements=tuple(entry for entry in refinements if entry.task_id == row.task_id),
                recoveries=tuple(entry for entry in recoveries if entry.task_id == row.task_id),
                plan_decisions=tuple(entry for entry in planned if entry.task_id == row.task_id),
                context_of=shared.get(row.task_id, ""),
                not_chosen=lost.get(row.task_id, ""),
                scaffold=scaffolds.get(row.task_id, ""),
            )
        )
    passes.sort(key=lambda entry: (entry.order.sequence_order if entry.order else -1, entry.row.id))
    return RunTrace(
        task_id=task_id,
        run=run,
        passes=tuple(passes),
        tests=tests,
        events=events,
        times=list_time_spans(conn, task_id),
    )


def choose(trace: RunTrace, place: str) -> Chosen:
    """The part of the task that `place` names: everything (""), `call:<id>` (also `call/<id>`), a pass by its id
    without the task, or `part[/step[/attempt]]`.

    Raises:
        UsageError: the task has nothing of that name; the hint lists the names.
    """
    if not place:
        return Chosen(place="", passes=trace.passes)
    if place.startswith(("call:", "call/")):
        return _call(trace, place.replace("/", ":", 1))
    exact = [entry for entry in trace.passes if place in {entry.place, relative_pass(entry.pass_id)}]
    found = exact or _by_plan(trace.passes, place.strip("/").split("/"))
    if not found:
        known = [entry.place for entry in trace.passes if entry.place]
        raise UsageError(
            f"this run has nothing called {place!r}",
            hint=f"it has: {', '.join([*known, 'call:<id>'])}"
            if known
            else "it has one pass: leave this out",
        )
    return Chosen(place=place, passes=tuple(found))


def context_passes(trace: RunTrace, entry: PassTrace) -> tuple[PassTrace, ...]:
    """The passes whose decisions made the context of `entry`, oldest first: a retry is shown its first attempt's, the
    only part's plan may be shown that of the meta-plan.
    """
    if entry.context_of:
        return tuple(found for found in trace.passes if relative_pass(found.pass_id) == entry.context_of)
    wanted = attempts_up_to(entry.pass_id)
    if len(wanted) == 1:
        return (entry,)
    return tuple(found for found in trace.passes if found.pass_id in wanted)


def seconds_between(start: str, end: str | None) -> float | None:
    """Seconds between two of the record's timestamps; None while there is no end.

    Raises:
        RecordError: one of them is invalid.
    """
    return None if end is None else (moment(end) - moment(start)).total_seconds()


def tokens_of(calls: Iterable[CallSummary]) -> int:
    """Prompt and answer tokens, as the server counted them or else as estimated; probes and failed calls do not count."""
    return sum(
        (call.cost.estimated_tokens if call.cost.prompt_tokens is None else call.cost.prompt_tokens)
        + (call.cost.completion_tokens or 0)
        for call in calls
        if not call.ending.finish.startswith("error:")
    )


def cached_share(calls: Iterable[CallSummary]) -> float | None:
    """The share of the prompts' tokens that the server had in its prefix cache; None if it does not say."""
    told = [call for call in calls if call.cost.cached_tokens is not None]
    counted = sum(call.cost.prompt_tokens or 0 for call in told)
    return sum(call.cost.cached_tokens or 0 for call in told) / counted if counted else None


def _place(pass_id: str, order: PassRow | None, attempts: Sequence[AttemptRow]) -> str:
    relative = relative_pass(pass_id)
    if order is None or order.pass_type is not PassType.IMPLEMENT:
        return relative
    number = attempts[0].attempt if attempts else attempt_of(pass_id)
    return f"{order.part_id}/{order.step_id}/{number}"


def _call(trace: RunTrace, place: str) -> Chosen:
    named = parse_call(place)
    for entry in trace.passes:
        for call in entry.calls:
            if named is not None and named.line is None and call.id == named.call_id:
                return Chosen(place=place, passes=(entry,), call=call)
    raise UsageError(
        f"this run made no call {place[len('call:') :]!r}",
        hint="`cra show RUN --budget` lists its calls with their ids",
    )


def _by_plan(passes: Sequence[PassTrace], names: list[str]) -> list[PassTrace]:
    """The passes of a part, of a step (its attempts and the adjustment after it), or of one attempt at a step."""
    part, step = names[0], names[1] if len(names) > 1 else None
    if len(names) > 2:
        return []
    return [
        entry
        for entry in passes
        if entry.order is not None
        and entry.order.part_id == part
        and (step is None or entry.order.step_id == step)
    ]
