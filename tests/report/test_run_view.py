from msgspec.structs import replace
from tests.report.conftest import LargeRun

from clean_room_agent.json_values import to_shown
from clean_room_agent.report.run_view import pass_views, run_view
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
