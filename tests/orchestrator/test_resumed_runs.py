"""Runs that were interrupted go on with what they had, in whole runs in memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.runs.memory_till import MemoryTill, dying, memory_till
from testing.runs.solving import Script, edit
from testing.runs.spoiled_answers import SPLIT
from testing.servers.ollama_script import Answer, Answerer, ChatCall

from clean_room_agent.errors import ServerFailed
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import META_PLAN

HARMLESS = edit(SPLIT, f"    # even shares\n{SPLIT}")


@pytest.fixture
def till(tmp_path: Path) -> Iterator[MemoryTill]:
    with memory_till(tmp_path) as made:
        yield made


def interrupted(script: Answerer, title: str, number: int) -> Answerer:
    """Ctrl-C while the model writes the answer to the prompt's call of that number (from 1)."""
    left = [number]

    def answer(call: ChatCall) -> Answer | str:
        left[0] -= call.title == title
        if call.title == title and left[0] == 0:
            raise KeyboardInterrupt
        return script(call)

    return answer


def test_a_run_that_failed_with_its_server_asks_only_the_failed_question_again(till: MemoryTill) -> None:
    answerer = dying(Script(till.oracle), IMPLEMENT.title)
    told = till.solve(answerer)
    assert isinstance(told.error, ServerFailed)
    assert told.ending[0] == "failed"
    again = till.resume(answerer)
    assert again.ending == ("complete", "")
    titles = [call.site.call_type for call in again.recorded.calls]
    assert titles.count(IMPLEMENT.name) == 2
    assert titles.count(META_PLAN.name) == 1
    assert till.replay().ending == ("complete", "")


def test_a_spent_budget_that_is_not_raised_ends_the_run_again(till: MemoryTill) -> None:
    script = Script(till.oracle)
    assert till.solve(script, orchestrator={"max_calls": 2}).ending[0] == "partial"
    status, reason = till.resume(script).ending
    assert status == "partial"
    assert "(max_calls = 2)" in reason
    told = till.resume(script, orchestrator={"max_calls": 50})
    assert told.ending == ("complete", "")
    assert len(told.recorded.calls) > 2
    assert till.replay().ending == ("complete", "")


def test_an_attempt_that_was_kept_is_known_when_the_run_goes_on(till: MemoryTill) -> None:
    right = Script(till.oracle, {IMPLEMENT.title: [HARMLESS]})
    answerer = interrupted(right, IMPLEMENT.title, 2)
    told = till.solve(answerer, solve={"max_attempts": 2})
    assert isinstance(told.error, KeyboardInterrupt)
    assert (told.ending[0], told.recorded.outcomes) == ("interrupted", ["applied_and_passed"])
    again = till.resume(answerer)
    assert again.recorded.outcomes == ["applied_and_passed", "applied_and_passed"]
    assert len(again.memory.runner.commands_run) == 1, (
        "the new attempt; neither the baseline nor what was kept"
    )
    assert again.ending == ("complete", "")
    assert till.replay().recorded.outcomes == again.recorded.outcomes
