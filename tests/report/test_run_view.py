import inspect
import io
import json
import re
from datetime import timedelta

import pytest
from msgspec.structs import replace
from rich.console import Console
from tests.report.conftest import LargeRun

from clean_room_agent.artifacts.goals import GoalOutcome, GoalSource
from clean_room_agent.artifacts.outcomes import EventKind, RunStatus, TimeKind
from clean_room_agent.db.raw.runs import EventRow, TimeSpanRow
from clean_room_agent.db.rows import moment
from clean_room_agent.errors import RecordError
from clean_room_agent.json_values import to_plain, to_shown
from clean_room_agent.report.render_run import render_run
from clean_room_agent.report.run_view import KEPT_AS_DATA, event_words, pass_views, run_view
from clean_room_agent.report.summary import Ending
from clean_room_agent.report.trace import choose


def test_a_run_is_seen_with_its_passes_its_progress_and_its_cost(large: LargeRun) -> None:
    view = run_view(large.trace, Ending())
    assert large.trace.run is not None
    assert (view.head.task_id, view.head.status) == (large.trace.task_id, large.trace.run.status.value)
    assert [line.place for line in view.passes] == [entry.place for entry in large.trace.passes]
    assert view.cost.calls == len(large.all.calls) == sum(line.calls for line in view.passes)
    assert view.outcome.tests_before.startswith("180 passed")


def test_in_json_its_parts_stand_beside_one_another(large: LargeRun) -> None:
    said = to_shown(run_view(large.trace, Ending()))
    assert said.keys() >= {"task_id", "status", "branch", "parts", "tokens", "passes", "ending", "notes"}


def test_passes_without_a_run_are_seen_as_what_they_are(large: LargeRun) -> None:
    alone = run_view(replace(large.trace, run=None), Ending())
    assert alone.head.status == "complete"
    nothing = run_view(replace(large.trace, run=None, passes=()), Ending())
    assert (nothing.head.status, nothing.passes) == ("no pass is recorded", ())


def test_a_pass_is_seen_with_its_attempts_and_its_calls(large: LargeRun) -> None:
    views = pass_views(choose(large.trace, "p1/s1"))
    assert views
    for view in views:
        assert len(view.calls) == view.line.calls
        assert view.attempts[0].startswith("attempt ")


def test_what_became_of_the_goal_tests_is_seen(large: LargeRun) -> None:
    seen = GoalOutcome(
        name="t.py::fill", source=GoalSource.STATED, trust="shown", before="[9]", after="[9, 0]", green=True
    )
    detail = json.dumps([to_plain(seen)])
    event = EventRow(task_id=large.trace.task_id, kind="evidence", detail=detail, timestamp="")
    assert large.trace.run is not None
    done = replace(large.trace.run, status=RunStatus.COMPLETE, reason="")
    view = run_view(replace(large.trace, run=done, events=(*large.trace.events, event)), Ending())
    assert view.evidence == (seen,)
    console = Console(file=io.StringIO(), width=200)
    console.print(render_run(view, lambda place: place))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "complete: shown by t.py::fill: [9] before, [9, 0] now\n" in text
    assert "evidence" not in text


def test_evidence_that_this_program_never_writes_is_a_fault_of_the_record(large: LargeRun) -> None:
    event = EventRow(task_id=large.trace.task_id, kind="evidence", detail="[1", timestamp="")
    with pytest.raises(RecordError):
        run_view(replace(large.trace, events=(event,)), Ending())


def test_no_event_is_shown_as_the_data_that_it_is_stored_as() -> None:
    source = inspect.getsource(EventKind)
    stored = [
        EventKind[name]
        for name, says in re.findall(
            r'^    ([A-Z_]+) = "\w+"\n    """(.*?)"""', source, re.MULTILINE | re.DOTALL
        )
        if "JSON" in says
    ]
    assert len(stored) > 9
    assert [kind for kind in stored if kind not in KEPT_AS_DATA] == []
    assert event_words("flags", '{"samples": 3, "stages": "scope"}') == "samples = 3, stages = scope"
    assert event_words("plan_given", '{"task": "Fix it.", "steps": [{}]}') == "1 step"
    assert event_words("meta_plan_given", '{"parts": [{}, {}]}') == "2 parts"
    assert event_words("pruned", '["record", "refs"]') == "record, refs"
    assert event_words("tests_touched", '{"files": []}') == ""
    assert event_words("hint", '{"say": "it in JSON"}') == '{"say": "it in JSON"}'


def test_the_time_that_a_run_took_is_without_the_pause_before_it_was_resumed(large: LargeRun) -> None:
    run = large.trace.run
    assert run is not None
    ended = moment(run.completed_at or "")

    def span(kind: TimeKind, began: str, end: str) -> TimeSpanRow:
        return TimeSpanRow(task_id=large.trace.task_id, kind=kind, began_at=began, ended_at=end)

    at = [(ended + timedelta(seconds=seconds)).isoformat() for seconds in (60, 61, 70)]
    resumed = replace(
        large.trace,
        run=replace(run, completed_at=at[2]),
        times=(
            span(TimeKind.START, run.timestamp, run.timestamp),
            span(TimeKind.TESTS, run.timestamp, run.completed_at or ""),
            span(TimeKind.START, at[0], at[2]),
        ),
    )
    before, after = run_view(large.trace, Ending()).head.seconds, run_view(resumed, Ending()).head.seconds
    assert before is not None
    assert after == pytest.approx(before + 10, abs=0.1)
