"""A run as people look at it: everything that the record holds of a task, read once, pass by pass.

The summary, `cra show`, the HTML page and the bug report are made of a `RunTrace`. A part of the run (a part, a step, an
attempt, a call) is a `RunTrace`, too, with fewer passes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.model_calls import CallSummary
from clean_room_agent.artifacts.names import attempt_of, attempts_up_to, parse_call, relative_pass
from clean_room_agent.artifacts.outcomes import EventKind, PassType
from clean_room_agent.db.raw import passes as rows
from clean_room_agent.db.raw.calls import list_call_summaries
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

PLANNING = {PassType.META_PLAN, PassType.PART_PLAN}


class PassTrace(Struct, frozen=True, kw_only=True):
    """One pass, with all that the record holds under its id."""

    place: str
    """Its name after `RUN/`: `meta_plan`, `part/step/1`, or else its id without the task; "" if it is the task."""
    row: rows.TaskRunRow
    order: rows.PassRow | None
    """Its place in the run; None for a single pass without a run."""
    calls: tuple[CallSummary, ...]
    """With probes of the server's window."""
    decisions: tuple[rows.DecisionRow, ...]
    attempts: tuple[rows.AttemptRow, ...]
    tests: tuple[rows.ValidationRow, ...]
    refinements: tuple[rows.RefinementRow, ...]
    recoveries: tuple[rows.RecoveryRow, ...]
    plan_decisions: tuple[rows.PlanDecisionRow, ...] = ()
    context_of: str = ""
    """The pass, without its task, whose context it was shown; "" if it had its own, or that of an earlier attempt."""
    not_chosen: str = ""
    """What another attempt did better; "" if it was not compared, or is the best."""

    @property
    def pass_id(self) -> str:
        """The id under which the record keeps it."""
        return self.row.task_id

    @property
    def kind(self) -> str:
        """Its type in the run; of a single pass, its mode."""
        return self.order.pass_type.value if self.order else self.row.mode

    @property
    def seconds(self) -> float | None:
        """How long it took; None while it has not ended."""
        return seconds_between(self.row.timestamp, self.row.completed_at)

    @property
    def fullest(self) -> tuple[int, int]:
        """(tokens, window) of the prompt that left the smallest part of its window free; (0, 0) if there was none. Probes,
        which must not fit, do not count.
        """
        sizes = [
            (call.cost.read_tokens, window)
            for call in self.calls
            if (window := self.window_of(call)) and call.site.call_type != PROBE_NAME
        ]
        return max(sizes, key=lambda size: size[0] / size[1], default=(0, 0))

    def window_of(self, call: CallSummary) -> int:
        """The window that the request asked for, or else the pass's."""
        return call.limits.window or self.row.context_window

    def is_accepted(self, attempt: rows.AttemptRow) -> bool:
        """Whether the change of the attempt, one of this pass, is in the result."""
        passed = attempt.outcome == "applied_and_passed" and not self.not_chosen
        # A pass may have several that passed, of which one was chosen.
        return passed and (len(self.attempts) == 1 or attempt.diff == self.row.final_diff)


class RunTrace(Struct, frozen=True, kw_only=True):
    """One task, or a part of it."""

    task_id: str
    run: OrchestratorRunRow | None
    """None for a single pass (a retrieval)."""
    passes: tuple[PassTrace, ...]
    """In the order in which they began."""
    tests: tuple[rows.ValidationRow, ...]
    """The test runs of these passes, and of the run itself if this is all of it; by id."""
    events: tuple[EventRow, ...]
    """Of the whole task."""
    times: tuple[TimeSpanRow, ...] = ()
    """What its time was spent on, apart from calls; empty if an older version recorded it."""
    place: str = ""
    """The part that this is; "" for all of it."""

    @property
    def calls(self) -> tuple[CallSummary, ...]:
        """In order, without probes of the server's window unless one was chosen."""
        chosen = parse_call(self.place) is not None
        every = (call for entry in self.passes for call in entry.calls)
        return tuple(call for call in every if chosen or call.site.call_type != PROBE_NAME)

    @property
    def command(self) -> str:
        """The command that made it; "" if only calls are recorded."""
        if self.run is not None:
            return self.run.command
        return lone_command(self.passes[0].row.mode) if self.passes else ""

    @property
    def status(self) -> str:
        """How it ended, in a word."""
        if self.run is not None:
            return self.run.status.value
        if not self.passes:
            return "no pass is recorded"
        success = self.passes[0].row.success
        return "running" if success is None else "complete" if success else "failed"

    @property
    def was_planned(self) -> bool:
        """Whether there was a plan, made or given, of which parts and steps can be counted; the direct route has none."""
        made = {entry.order.pass_type for entry in self.passes if entry.order is not None}
        given = {event.kind for event in self.events}
        return bool(made & PLANNING or given & {EventKind.PLAN_GIVEN, EventKind.META_PLAN_GIVEN})

    @property
    def places(self) -> Mapping[str, str]:
        """What each pass is called, by its id; "" for the task, if this is all of it."""
        whole = {} if self.place else {self.task_id: ""}
        return whole | {entry.pass_id: entry.place for entry in self.passes}

    def accepted(self) -> tuple[tuple[PassTrace, rows.AttemptRow], ...]:
        """The attempts whose change is in the result, oldest first."""
        return tuple(
            (entry, attempt)
            for entry in self.passes
            for attempt in entry.attempts
            if entry.is_accepted(attempt)
        )


RowT = TypeVar("RowT")
KeyT = TypeVar("KeyT")


def read_trace(conn: Connection, task_id: str) -> RunTrace:
    """Everything that the record has of a task, except the texts of its calls."""
    run = get_orchestrator_run(conn, task_id)
    order = {} if run is None else {entry.task_run_id: entry for entry in rows.list_passes(conn, run.id)}
    calls = _grouped_by_key(list_call_summaries(conn, task_id), lambda call: call.site.pass_id)
    attempts = _grouped_by_key(rows.list_attempts(conn, task_id), lambda row: row.task_run_id)
    tests, events = rows.list_validations(conn, task_id), list_events(conn, task_id)
    decisions = _grouped_by_key(rows.list_decisions(conn, task_id), lambda row: row.task_id)
    plan_decisions = _grouped_by_key(rows.list_plan_decisions(conn, task_id), lambda row: row.task_id)
    refinements = _grouped_by_key(rows.list_refinements(conn, task_id), lambda row: row.task_id)
    recoveries = _grouped_by_key(rows.list_recovery_decisions(conn, task_id), lambda row: row.task_id)
    told = _grouped_by_key(events, lambda row: row.task_id)
    tests_of = _grouped_by_key(tests, lambda row: row.task_id)
    recorded = rows.list_task_runs(conn, task_id)
    passes = [
        PassTrace(
            place=_pass_place(row.task_id, order.get(row.id), attempts[row.id]),
            row=row,
            order=order.get(row.id),
            calls=calls[row.task_id],
            decisions=decisions[row.task_id],
            attempts=attempts[row.id],
            tests=tests_of[row.task_id],
            refinements=refinements[row.task_id],
            recoveries=recoveries[row.task_id],
            plan_decisions=plan_decisions[row.task_id],
            context_of=_last_detail(told[row.task_id], EventKind.CONTEXT_OF),
            not_chosen=_last_detail(told[row.task_id], EventKind.NOT_CHOSEN),
        )
        for row in (*recorded, *(_rows_of_calls_alone(calls, recorded) if run is not None else ()))
    ]
    passes.sort(key=lambda entry: (entry.order.sequence_order if entry.order else -1, entry.row.id))
    return RunTrace(
        task_id=task_id,
        run=run,
        passes=tuple(passes),
        tests=tests,
        events=events,
        times=list_time_spans(conn, task_id),
    )


def choose(trace: RunTrace, place: str) -> RunTrace:
    """The part of the task that `place` names: everything (""), `call:<id>` (also `call/<id>`) with the decisions that the
    call judged, a pass by its id without the task, or `part[/step[/attempt]]`.

    Raises:
        UsageError: the task has nothing of that name; the hint lists the names.
    """
    if not place:
        return trace
    if place.startswith(("call:", "call/")):
        place = place.replace("/", ":", 1)
        found = [_with_call(trace, place)]
    else:
        found = [entry for entry in trace.passes if place in {entry.place, relative_pass(entry.pass_id)}]
        found = found or _of_plan(trace.passes, place.strip("/").split("/"))
    if not found:
        known = [entry.place for entry in trace.passes if entry.place]
        hint = f"it has: {', '.join([*known, 'call:<id>'])}" if known else "it has one pass: leave this out"
        raise UsageError(f"this run has nothing called {place!r}", hint=hint)
    ids = {entry.pass_id for entry in found}
    tests = tuple(row for row in trace.tests if row.task_id in ids)
    return replace(trace, place=place, passes=tuple(found), tests=tests)


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
        call.cost.read_tokens + (call.cost.completion_tokens or 0)
        for call in calls
        if not call.ending.finish.startswith("error:")
    )


def cached_share(calls: Iterable[CallSummary]) -> float | None:
    """The share of the prompts' tokens that the server had in its prefix cache; None if it does not say."""
    told = [call for call in calls if call.cost.cached_tokens is not None]
    counted = sum(call.cost.prompt_tokens or 0 for call in told)
    return sum(call.cost.cached_tokens or 0 for call in told) / counted if counted else None


def ended_words(call: CallSummary) -> str:
    """Why generation ended and how the answer was read, in a few words."""
    if call.site.call_type == PROBE_NAME:
        return "refused, as it must be" if call.ending.finish.startswith("error:") else "not refused"
    words = [call.ending.finish.removeprefix("error:") if call.ending.error else call.ending.finish]
    if call.ending.error:
        words.append(call.ending.error)
    elif call.read is not None:
        words.append(": ".join(filter(None, (call.read.reading, call.read.fault))))
    if call.site.attempt:
        words.append(f"asked again ({call.site.attempt})")
    return ", ".join(words)


def lone_command(mode: str) -> str:
    """The command that leaves a pass of this mode alone in the record."""
    return "retrieve" if mode in {"plan", "implement"} else mode.replace("_", "-")


def _grouped_by_key(
    found: Iterable[RowT], key: Callable[[RowT], KeyT]
) -> defaultdict[KeyT, tuple[RowT, ...]]:
    groups: defaultdict[KeyT, list[RowT]] = defaultdict(list)
    for row in found:
        groups[key(row)].append(row)
    return defaultdict(tuple, {name: tuple(members) for name, members in groups.items()})


def _rows_of_calls_alone(
    calls: Mapping[str, Sequence[CallSummary]], recorded: Sequence[rows.TaskRunRow]
) -> list[rows.TaskRunRow]:
    """Rows for what is no pass of its own: the questions about goal tests, which are asked before the first one."""
    known = {row.task_id for row in recorded}
    return [
        rows.TaskRunRow(
            task_id=pass_id,
            repo_path="",
            mode="plan",
            execute_model=own[0].model.tag,
            context_window=recorded[0].context_window if recorded else 0,
            reserved_tokens=0,
            stages="",
            success=True,
            timestamp=own[0].cost.timestamp,
        )
        for pass_id, own in calls.items()
        if pass_id not in known
    ]


def _last_detail(events: Sequence[EventRow], kind: EventKind) -> str:
    """The detail of the last event of this kind; "" if there is none."""
    return next((event.detail for event in reversed(events) if event.kind == kind), "")


def _pass_place(pass_id: str, order: rows.PassRow | None, attempts: Sequence[rows.AttemptRow]) -> str:
    relative = relative_pass(pass_id)
    if order is None or order.pass_type is not PassType.IMPLEMENT:
        return relative
    number = attempts[0].attempt if attempts else attempt_of(pass_id)
    return f"{order.part_id}/{order.step_id}/{number}"


def _with_call(trace: RunTrace, place: str) -> PassTrace:
    """The pass of the call, with nothing but it and what it judged."""
    named = parse_call(place)
    for entry in trace.passes:
        for call in entry.calls:
            if named is not None and named.line is None and call.id == named.call_id:
                decisions = (row for row in entry.decisions if row.judgment.call_id == call.id)
                about_plan = (row for row in entry.plan_decisions if row.judgment.call_id == call.id)
                return replace(
                    entry, calls=(call,), decisions=tuple(decisions), plan_decisions=tuple(about_plan)
                )
    raise UsageError(
        f"this run made no call {place[len('call:') :]!r}",
        hint="`cra show RUN --budget` lists its calls with their ids",
    )


def _of_plan(passes: Sequence[PassTrace], names: list[str]) -> list[PassTrace]:
    """The passes of a part, or of a step (its attempts and the adjustment after it)."""
    return [
        entry
        for entry in passes
        if entry.order is not None and [entry.order.part_id, entry.order.step_id][: len(names)] == names
    ]
