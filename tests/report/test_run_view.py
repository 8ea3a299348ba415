import inspect
import io
import json
import re

import pytest
from msgspec.structs import replace
from rich.console import Console
from tests.report.conftest import Solved

from clean_room_agent.artifacts.goals import GoalOutcome, GoalSource
from clean_room_agent.artifacts.outcomes import EventKind, PassType, RunStatus
from clean_room_agent.db.raw.runs import EventRow
from clean_room_agent.errors import RecordError
from clean_room_agent.json_values import to_plain
from clean_room_agent.report.page.html import run_html, run_page
from clean_room_agent.report.run_view import KEPT_AS_DATA, event_words, notes, render_run, run_object
from clean_room_agent.report.summary import Ending
from clean_room_agent.report.trace import RunTrace


def with_events(trace: RunTrace, *told: tuple[str, str]) -> RunTrace:
    rows = (EventRow(task_id=trace.task_id, kind=kind, detail=detail, timestamp="") for kind, detail in told)
    return replace(trace, events=tuple(rows))


def shown(trace: RunTrace, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(render_run(trace, Ending(), str))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_run_is_seen_with_its_passes_and_its_cost(solved: Solved) -> None:
    view = run_object(solved.trace, Ending())
    assert [line["place"] for line in view["passes"]] == [entry.place for entry in solved.trace.passes]
    assert view["tokens"] == sum(line["tokens"] for line in view["passes"])
    assert (view["tests_before"], view["tests_after"]) == ("6 passed, 2 failed", "8 passed, 0 failed")


def test_a_long_name_goes_on_below_itself_and_an_interruption_is_said_once(solved: Solved) -> None:
    first = replace(solved.trace.passes[0], place="part_plan:" + "slugify-number-converter" * 3)
    assert solved.trace.run is not None
    stopped = replace(solved.trace.run, status=RunStatus.INTERRUPTED, reason="interrupted")
    said = shown(replace(solved.trace, passes=(first,), run=stopped), 80)
    assert re.search(r"(?m)^[✓·✗] part_plan:slugify.*\n {2}\S", said)
    assert said.startswith(f"{solved.trace.task_id[:8]}  solve  interrupted\n")


def test_parts_are_counted_only_where_there_was_a_plan(solved: Solved) -> None:
    assert "  done     1 of 1 part" in shown(solved.trace)
    direct = replace(
        solved.trace,
        passes=tuple(
            entry
            for entry in solved.trace.passes
            if entry.order is None or entry.order.pass_type is PassType.IMPLEMENT
        ),
    )
    for trace, planned in ((solved.trace, True), (direct, False)):
        assert (" of 1 part" in shown(trace)) is planned
        page = run_html(run_page(solved.conn, trace, "", str))
        assert (" of 1 part, " in page) is planned


def test_what_became_of_the_goal_tests_is_seen(solved: Solved) -> None:
    goal = GoalOutcome(
        name="t.py::fill", source=GoalSource.STATED, trust="shown", before="[9]", after="[9, 0]", green=True
    )
    text = shown(with_events(solved.trace, ("evidence", json.dumps([to_plain(goal)]))))
    assert "complete: shown by t.py::fill: [9] before, [9, 0] now\n" in text
    assert "evidence" not in text


def test_evidence_that_this_program_never_writes_is_a_fault_of_the_record(solved: Solved) -> None:
    with pytest.raises(RecordError):
        run_object(with_events(solved.trace, ("evidence", "[1")), Ending())


def test_a_note_is_told_once_and_in_words(solved: Solved) -> None:
    trace = with_events(
        solved.trace,
        ("context_of", "meta_plan"),
        ("hint_shown", "the run says it"),
        ("plan_note", "refused: part p1 needs p9"),
        ("plan_note", "refused: part p1 needs p9"),
        ("plan_fault", "part p1 needs p9"),
        ("plan_fault", "at least one step is needed"),
    )
    assert notes(trace) == (
        ("plan note", "refused: part p1 needs p9"),
        ("plan fault", "at least one step is needed"),
    )


def test_no_event_is_shown_as_the_data_that_it_is_stored_as() -> None:
    source = inspect.getsource(EventKind)
    documented = re.findall(r'^    ([A-Z_]+) = "\w+"\n    """(.*?)"""', source, re.MULTILINE | re.DOTALL)
    stored = [EventKind[name] for name, says in documented if "JSON" in says]
    assert len(stored) > 7
    assert [kind for kind in stored if kind not in KEPT_AS_DATA] == []
    assert event_words("flags", '{"samples": 3, "stages": "scope"}') == "samples = 3, stages = scope"
    assert event_words("tests_touched", '{"files": []}') == ""
    assert event_words("hint", '{"say": "it in JSON"}') == '{"say": "it in JSON"}'
