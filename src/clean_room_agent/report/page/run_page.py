"""The content of the page of a run, before it is rendered: a function of the record."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from clean_room_agent.artifacts.goals import GoalOutcome
from clean_room_agent.artifacts.names import short_id
from clean_room_agent.db.raw.passes import ValidationRow
from clean_room_agent.db.raw.runs import recorded_evidence
from clean_room_agent.db.rows import Connection
from clean_room_agent.json_values import change_texts
from clean_room_agent.report.call_texts import CallTexts, call_texts
from clean_room_agent.report.causes import ending_on_record
from clean_room_agent.report.page.plan_list import PlannedPart, planned_parts
from clean_room_agent.report.run_view import run_object
from clean_room_agent.report.summary import Ending, TestsTouched, touched_on_record
from clean_room_agent.report.time_lanes import TimeLanes, time_lanes
from clean_room_agent.report.trace import RunTrace
from clean_room_agent.report.windows import WindowUse, window_uses

OF_RUN = {"baseline": "before", "final": "after", "restored": "after, with the tests restored"}
"""Kinds of test runs whose whole output is on the page; for an attempt, only the failures are."""


class RunPage(Struct, frozen=True, kw_only=True):
    """The page of one run."""

    trace: RunTrace
    view: dict[str, Any]
    """The run as `cra show --json` answers it."""
    ending: Ending
    evidence: tuple[GoalOutcome, ...]
    result: str
    """The whole run's change as a diff; "" if there is none."""
    plan: tuple[PlannedPart, ...]
    lanes: TimeLanes | None
    uses: tuple[WindowUse, ...]
    texts: dict[int, CallTexts]
    """By the id of the call."""
    systems: tuple[str, ...]
    """The system texts, each once."""
    tests: tuple[ValidationRow, ...]
    """Of the run itself: before, after, and with the tests restored."""
    touched: TestsTouched
    commands: tuple[tuple[str, str], ...]
    """(command, what it does) to look further."""


def run_page(conn: Connection, trace: RunTrace, result: str, safe: Callable[[str], str]) -> RunPage:
    """The page, in which every text went through `safe`; `result` is the change that the run made.

    Raises:
        RecordError: the record holds a value that this program never writes.
    """
    texts, ending = call_texts(conn, trace), ending_on_record(conn, trace)
    page = RunPage(
        trace=trace,
        view=run_object(trace, ending),
        ending=ending,
        evidence=recorded_evidence(trace.events) or (),
        result=result,
        plan=planned_parts(trace),
        lanes=time_lanes(trace),
        uses=window_uses(conn, trace),
        texts={text.head.id: text for text in texts},
        systems=tuple(dict.fromkeys(text.call.request.system_prompt for text in texts)),
        tests=tuple(row for row in trace.tests if row.task_id == trace.task_id and row.kind in OF_RUN),
        touched=touched_on_record(trace.events),
        commands=_commands(trace),
    )
    return change_texts(page, safe)  # type: ignore[no-any-return]


def _commands(trace: RunTrace) -> tuple[tuple[str, str], ...]:
    run, row = short_id(trace.task_id), trace.run
    rows = [(f"cra show {run}", "look into it in the terminal")]
    if row is None:
        return tuple(rows)
    if row.branch:
        rows += [
            (f"cra apply {run}", "bring it into your working tree"),
            (f"git diff {row.base_commit[:10]}..{row.branch}", "what it changes, as git says it"),
        ]
    if row.status.value in {"partial", "failed", "interrupted", "needs_human"}:
        rows.append((f"cra solve --resume {run}", "continue where it stopped"))
    return (*rows, (f"cra replay {run}", "the same run again, from its recorded answers"))
