"""A recorded run, or a part of it, at a glance: what it was, and its results pass by pass or call by call."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Struct, field

from clean_room_agent.artifacts.goals import GoalOutcome
from clean_room_agent.artifacts.model_calls import CallSummary
from clean_room_agent.artifacts.names import counted, item_name
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.db.raw.passes import AttemptRow, ValidationRow
from clean_room_agent.db.raw.runs import recorded_evidence
from clean_room_agent.git.generated import Generated, generated_in
from clean_room_agent.json_values import FLAT
from clean_room_agent.report.budget import CallLine, call_line, fullest
from clean_room_agent.report.runs import lone_command
from clean_room_agent.report.summary import Ending, TestsTouched, touched_on_record
from clean_room_agent.report.time_axis import working_seconds
from clean_room_agent.report.trace import (
    Chosen,
    PassTrace,
    RunTrace,
    cached_share,
    seconds_between,
    tokens_of,
)
from clean_room_agent.report.validation import counts

KEPT_AS_DATA: Mapping[str, Callable[[Any], str] | None] = {
    EventKind.FLAGS: lambda flags: ", ".join(f"{key} = {value}" for key, value in sorted(flags.items())),
    EventKind.PLAN_GIVEN: lambda plan: counted(len(plan["steps"]), "step"),
    EventKind.META_PLAN_GIVEN: lambda plan: counted(len(plan["parts"]), "part"),
    EventKind.PRUNED: ", ".join,
    EventKind.RESUMED_WITH: None,
    EventKind.EVIDENCE_GIVEN: None,
    EventKind.EVIDENCE: None,
    EventKind.DESCRIBED_BY: None,
    EventKind.GOAL_TESTS: None,
    EventKind.TESTS_TOUCHED: None,
    EventKind.REMOVED: None,
}
"""What people are shown of events whose detail is JSON; None if it is shown elsewhere, or of no interest to them."""


def event_words(kind: str, detail: str) -> str:
    """The detail of an event as people are shown it; "" if they are not."""
    if kind not in KEPT_AS_DATA:
        return detail
    words = KEPT_AS_DATA[kind]
    return "" if words is None else words(json.loads(detail))


class PassLine(Struct, frozen=True, kw_only=True):
    """One pass of a run."""

    place: str
    pass_type: str
    pass_id: str
    success: bool | None
    """None while it has not ended."""
    detail: str
    calls: int
    tokens: int
    fullest: tuple[int, int]
    """(tokens, window) of its fullest prompt; (0, 0) if there was none."""
    seconds: float | None


class RunHead(Struct, frozen=True, kw_only=True):
    """What was asked for, and how it ended."""

    task_id: str
    command: str
    status: str
    reason: str = ""
    task: str = ""
    began: str = ""
    seconds: float | None = None
    """How long it worked, without the pauses before it was resumed; None while it has not ended."""


class RunCommits(Struct, frozen=True, kw_only=True):
    """What it began with and what it left in git; "" for nothing."""

    base_commit: str = ""
    snapshot_commit: str = ""
    uncommitted: tuple[str, ...] = ()
    generated: tuple[Generated, ...] = ()
    """Folders that the snapshot leaves out because tools created them."""
    branch: str = ""
    result_commit: str = ""


class RunOutcome(Struct, frozen=True, kw_only=True):
    """How far it came."""

    parts: tuple[int, int] = (0, 0)
    """(done, all)."""
    steps: tuple[int, int] = (0, 0)
    tests_before: str = ""
    tests_after: str = ""


class RunCost(Struct, frozen=True, kw_only=True):
    """What its calls cost."""

    calls: int = 0
    tokens: int = 0
    cached: float | None = None
    """The share of the prompts' tokens that the server had in its prefix cache; None if it does not say."""


class RunView(Struct, frozen=True, kw_only=True):
    """A run and its passes; for a single pass without a run, fields that do not apply are empty."""

    head: Annotated[RunHead, FLAT]
    commits: Annotated[RunCommits, FLAT] = field(default_factory=RunCommits)
    outcome: Annotated[RunOutcome, FLAT] = field(default_factory=RunOutcome)
    cost: Annotated[RunCost, FLAT] = field(default_factory=RunCost)
    passes: tuple[PassLine, ...] = ()
    ending: Ending = field(default_factory=Ending)
    """Why it is not complete, by the outcomes of its calls and attempts."""
    evidence: tuple[GoalOutcome, ...] = ()
    """What became of each goal test."""
    touched: TestsTouched = field(default_factory=TestsTouched)
    notes: tuple[tuple[str, str], ...] = ()
    """(kind, detail) of events outside the passes, in order, as they are recorded."""


class PassView(Struct, frozen=True, kw_only=True):
    """One pass with its calls."""

    line: PassLine
    model: str
    calls: tuple[CallLine, ...]
    included: tuple[str, ...]
    """What assembly included in the context, in order."""
    attempts: tuple[str, ...]
    """The outcome of its scaffold, then its own."""
    tests: tuple[str, ...]
    followed: tuple[str, ...]
    """Refinements, why it was not chosen, and recovery decisions recorded for the pass."""


def run_view(trace: RunTrace, ending: Ending) -> RunView:
    """The run at a glance, with its `ending` as far as known; for a single pass, what applies to it."""
    passes = tuple(pass_line(entry) for entry in trace.passes)
    calls = [call for entry in trace.passes for call in entry.calls]
    own = {kind: row for row in trace.tests for kind in [row.kind] if row.task_id == trace.task_id}
    run = trace.run
    if run is None:
        return _alone(trace, passes)
    account = json.loads(run.snapshot) if run.snapshot else {}
    return RunView(
        head=RunHead(
            task_id=run.task_id,
            command=run.command,
            status=run.status.value,
            reason=run.reason,
            task=run.task_description,
            began=run.timestamp,
            seconds=working_seconds(trace, run.timestamp, run.completed_at),
        ),
        commits=RunCommits(
            base_commit=run.base_commit,
            snapshot_commit=run.snapshot_commit,
            uncommitted=tuple(sorted({*account.get("tracked", ()), *account.get("untracked", ())})),
            generated=generated_in(run.snapshot),
            branch=run.branch,
            result_commit=run.result_commit,
        ),
        outcome=RunOutcome(
            parts=(run.parts_completed, run.total_parts),
            steps=(run.steps_completed, run.total_steps),
            tests_before=_tests(own.get("baseline")),
            tests_after=_tests(own.get("final")),
        ),
        cost=_cost_of(calls),
        passes=passes,
        ending=ending,
        evidence=recorded_evidence(trace.events) or (),
        touched=touched_on_record(trace.events),
        notes=tuple((event.kind, event.detail) for event in trace.events),
    )


def _cost_of(calls: Sequence[CallSummary]) -> RunCost:
    return RunCost(calls=len(calls), tokens=tokens_of(calls), cached=cached_share(calls))


def pass_line(entry: PassTrace) -> PassLine:
    """The pass in one line."""
    return PassLine(
        place=entry.place,
        pass_type=entry.order.pass_type.value if entry.order else entry.row.mode,
        pass_id=entry.pass_id,
        success=entry.row.success,
        detail=entry.row.detail,
        calls=len(entry.calls),
        tokens=tokens_of(entry.calls),
        fullest=fullest(entry.calls, entry.row.context_window),
        seconds=seconds_between(entry.row.timestamp, entry.row.completed_at),
    )


def pass_views(chosen: Chosen) -> tuple[PassView, ...]:
    """The chosen passes, each with its calls."""
    return tuple(
        PassView(
            line=pass_line(entry),
            model=entry.row.execute_model,
            calls=tuple(call_line(call, entry) for call in entry.calls),
            included=(f"what {entry.context_of} was shown",)
            if entry.context_of
            else tuple(
                f"{item_name(row.subject.path, row.subject.symbol)} ({row.detail.replace('_', ' ')})"
                for row in entry.decisions
                if row.stage == "assembly" and row.included
            ),
            attempts=(
                *((f"scaffold: {entry.scaffold}",) if entry.scaffold else ()),
                *(
                    f"attempt {row.attempt}: {row.outcome.value.replace('_', ' ')}"
                    f"{f', commit {row.commit_hash[:10]}' if row.commit_hash else ''}"
                    # Of one among several, the pass's own line says nothing.
                    f"{_why_not(row) if len(entry.attempts) > 1 else ''}"
                    for row in entry.attempts
                ),
            ),
            tests=tuple(_tests(row) for row in entry.tests),
            followed=(
                *(f"refined: {', '.join(row.added) or 'nothing came in'}" for row in entry.refinements),
                *((f"not chosen: {entry.not_chosen}",) if entry.not_chosen else ()),
                *(f"then {row.action}: {row.rule}" for row in entry.recoveries),
            ),
        )
        for entry in chosen.passes
    )


def _why_not(row: AttemptRow) -> str:
    """What was wrong with an attempt, in a line, after a colon; "" if nothing was."""
    return f": {row.error.partition(chr(10))[0]}" if row.error else ""


def _alone(trace: RunTrace, passes: tuple[PassLine, ...]) -> RunView:
    """A task without a run: one pass (a retrieval), or calls that belong to no pass."""
    if not trace.passes:
        return RunView(head=RunHead(task_id=trace.task_id, command="", status="no pass is recorded"))
    row = trace.passes[0].row
    ended = "complete" if row.success else "failed"
    calls = [call for entry in trace.passes for call in entry.calls]
    return RunView(
        head=RunHead(
            task_id=trace.task_id,
            command=lone_command(row.mode),
            status="running" if row.success is None else ended,
            reason=row.detail,
            began=row.timestamp,
            seconds=seconds_between(row.timestamp, row.completed_at),
        ),
        cost=RunCost(calls=len(calls), tokens=tokens_of(calls)),
        passes=passes,
    )


def _tests(row: ValidationRow | None) -> str:
    return "" if row is None else counts(row)
