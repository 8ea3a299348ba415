"""Every pathology ends as it should, soon, and says so in a line."""

import re
from pathlib import Path

import pytest
from benchmarks.recovery.zoo import ZOO, Pathology, SickModel, live_through
from testing.runs.memory_till import memory_till
from testing.runs.solving import Told
from testing.servers.ollama_script import Answer, ChatCall

LAST = {"complete": "complete: shown by ", "failed": "failed"}
"""Words of the last screen, by status; other ends are in tests/faults/."""
BY_NAME = {sick.name: sick for sick in ZOO}


@pytest.mark.parametrize("sick", ZOO, ids=lambda sick: sick.name)
def test_a_pathology_ends_as_is_due(sick: Pathology, tmp_path: Path) -> None:
    with memory_till(tmp_path / "till", sick.project, dict(sick.changed), task=sick.task) as till:
        model = SickModel(till.oracle, sick, tmp_path)

        def answer(call: ChatCall) -> Answer | str:
            said = model(call)
            # What the test command of such a project looks for.
            till.tests_are_broken = (tmp_path / "gone").exists()
            return said

        told = till.solve(answer, **sick.tables)
    status, reason = told.ending
    assert status == sick.ends, reason
    assert re.search(sick.reason, reason), reason
    assert len(told.recorded.calls) <= sick.most_calls


def check_told(sick: Pathology, told: Told) -> None:
    status, reason = told.recorded.ending
    assert (status, told.traces) == (sick.ends, {}), (reason, told.err)
    assert re.search(sick.reason, reason), reason
    assert len(told.recorded.calls) <= sick.most_calls
    said = told.out or told.err
    assert LAST[status] in said or reason in said
    assert reason in told.out + told.err


def test_a_command_says_how_it_ended_and_right_answers_are_not_counted(tmp_path: Path) -> None:
    sick = BY_NAME["a server that is slow"]
    lived = live_through(sick, tmp_path)
    check_told(sick, lived.told)
    assert (lived.spoiled, lived.wasted) == (0, 0)


def test_wrong_answers_and_the_calls_after_the_second_are_counted(tmp_path: Path) -> None:
    sick = BY_NAME["truncated for ever, one file"]
    lived = live_through(sick, tmp_path)
    check_told(sick, lived.told)
    calls = lived.told.recorded.calls
    wrong = [number for number, call in enumerate(calls) if call.site.call_type == "implement"]
    assert len(wrong) >= 2
    assert (lived.spoiled, lived.wasted) == (len(wrong), len(calls) - 1 - wrong[1])
