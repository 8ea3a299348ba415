import json
from collections.abc import Iterator
from typing import Any

from tests.report.conftest import LargeRun

from clean_room_agent.json_values import change_texts
from clean_room_agent.report.run_facts import call_facts, event_facts, run_facts, run_texts


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


TOLD = {
    "task_id",
    "command",
    "program_version",
    "began",
    "ended",
    "at",
    "id",
    "mode",
    "model",
    "stages",
    "rule",
    "action",
} | {"code", "kind", "prompt", "stage", "provider", "finish"}
"""The only texts of the record that are told: chosen by the program, but for the names of models."""


def keys_with(mark: str, value: Any, key: str = "") -> Iterator[str]:
    """The keys whose value is a text with `mark` in it, at any depth."""
    if isinstance(value, dict):
        for name, each in value.items():
            assert mark not in str(name)
            yield from keys_with(mark, each, str(name))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from keys_with(mark, each, key)
    elif isinstance(value, str) and mark in value:
        yield key


def test_no_text_of_the_record_is_told_but_those_that_are_listed(large: LargeRun) -> None:
    marked = change_texts(large.trace, lambda text: f"{text}MARK")
    told = set(keys_with("MARK", [run_facts(marked), event_facts(marked), call_facts(marked)]))
    assert told <= TOLD, told - TOLD
    assert {"task_id", "model", "finish", "began"} <= told
    assert "MARK" in json.dumps(run_texts(marked))


def test_parts_and_steps_are_numbered_instead_of_named(large: LargeRun) -> None:
    said = run_facts(large.trace)["passes"]
    assert [entry["place"] for entry in said] == [f"pass {number}" for number in range(1, len(said) + 1)]
    assert {event["of"] for event in event_facts(large.trace)} <= {
        "task",
        *(entry["place"] for entry in said),
    }
