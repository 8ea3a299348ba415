import json

from tests.report.conftest import LargeRun

from clean_room_agent.report.run_facts import call_facts, event_facts, run_facts


def test_the_facts_hold_what_happened_and_none_of_the_texts(large: LargeRun) -> None:
    run, calls = run_facts(large.trace), call_facts(large.trace)
    assert run["task_id"] == large.trace.task_id
    assert len(run["passes"]) == len(large.trace.passes)
    assert [call["id"] for call in calls] == [call.id for call in large.all.calls]
    said = json.dumps([run, calls, event_facts(large.trace)])
    assert large.trace.run is not None
    assert large.trace.run.task_description not in said
    assert "def " not in said
    assert run["task_characters"] == len(large.trace.run.task_description)
