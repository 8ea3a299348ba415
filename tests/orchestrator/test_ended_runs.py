"""How runs end in which a model, its server or a limit goes wrong, in memory: what the record holds, and what the next prompt says.
That such an end reaches the terminal with its exit code is said in tests/faults/.
"""

import re
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from testing.runs.memory_till import MemoryTill, memory_till
from testing.runs.solving import MENDED_MONEY, ONE_ATTEMPT, TILL, Spoil, edit
from testing.runs.spoiled_answers import cut
from testing.servers.ollama_script import Answer, ChatCall

from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.errors import CraError, ServerFailed, ServerUnreachable
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import META_PLAN

BETTER = "    share, rest = divmod(cents, people)\n    return [share + 1] * rest + [share] * (people - rest)"
NOT_FOUND = edit("    share = cents / people\n    return [share] * people", BETTER)


def test_the_same_wrong_answer_each_time_gives_the_step_up(till: MemoryTill) -> None:
    told = till.solve_scripted({IMPLEMENT.title: [NOT_FOUND] * 6})
    assert told.recorded.outcomes == ["refused"] * 5
    assert told.recorded.codes == [["NO_MATCH"]] * 5
    assert [(row.action, row.rule) for row in told.recorded.recoveries] == [
        ("retry", "attempts left: 2"),
        ("replan", "an approach flaw: two patch failures are 100% alike"),
        ("retry", "attempts left: 2"),
        ("diagnose", "2 failed, the last by patch"),
        ("change_strategy", "the same answer again: draw another"),
        ("skip", "attempts are used up"),
    ]
    first, _, third = told.recorded.calls_of("implement")[2:]
    assert (
        '"temperature":0' in first.request.request_body.replace(" ", ""),
        '"temperature":0.7' in third.request.request_body.replace(" ", ""),
    ) == (True, True)
    assert told.ending == ("failed", "s1-2: refused: edit 1 (till/money.py): NO_MATCH")
    kinds = [row.kind for row in told.recorded.validations]
    assert kinds == ["baseline", "recheck"]  # what the call in the words gives


def test_an_accepted_step_that_leaves_the_test_red_is_a_partial_result(till: MemoryTill) -> None:
    """Nothing breaks, and nothing is mended: the branch is kept, and called what it is."""
    harmless = edit('"""Sums of money, in cents."""', '"""Sums, in cents."""')
    told = till.solve_scripted({IMPLEMENT.title: [harmless]}, **ONE_ATTEMPT)
    assert told.ending == ("partial", "failing: tests.test_money.MoneyTest.test_split_keeps_every_cent")
    assert told.files["till/money.py"].startswith('"""Sums, in cents."""')
    assert told.recorded.tests("final").success is False


def test_an_edit_that_was_cut_is_a_truncated_attempt_and_the_next_one_is_told(till: MemoryTill) -> None:
    told = till.solve_scripted({IMPLEMENT.title: [cut]})
    assert told.ending == ("complete", "")
    assert told.recorded.outcomes == ["truncated", "applied_and_passed"]
    assert told.recorded.actions == ["retry"]
    first, second = told.recorded.calls_of("implement")
    assert first.ending.finish == "length"
    assert told.recorded.reading_of(first)[0] == "unreadable"
    said = told.recorded.attempts[0].error
    assert re.fullmatch(r"the answer was cut off after \d+ tokens; nothing was applied", said)
    assert "## Attempt 1 failed; the code is again as shown above" in second.request.prompt
    assert f"Result: truncated. {said}" in second.request.prompt
    attempt = told.recorded.attempts[0]
    assert not attempt.patch_applied


RED = "import unittest\n\n\nclass RedTest(unittest.TestCase):\n    def test_red(self):\n        self.assertEqual(1, 2)\n"


def test_a_test_that_was_red_before_may_stay_so_where_that_is_configured(tmp_path: Path) -> None:
    files = {path: str(text) for path, text in TILL.items()} | {"tests/test_red.py": RED}
    with memory_till(tmp_path, files) as till:
        told = till.solve_scripted({}, testing={"accept": "no-new-failures"})
    assert told.ending == ("complete", "")
    before, after = told.recorded.tests("baseline"), told.recorded.tests("final")
    assert (before.tests_passed, before.tests_run) == (3, 5)
    assert (after.tests_passed, after.tests_run) == (4, 5)


def test_a_repository_without_tests_gets_a_result_of_which_nothing_was_tested(tmp_path: Path) -> None:
    untested = {path: str(text) for path, text in TILL.items() if not path.startswith("tests/")}
    with memory_till(tmp_path / "refused", untested) as till:
        told = till.solve_scripted()
        assert (told.ending[0], told.recorded.calls) == ("failed", ())
        assert told.recorded.tests("baseline").tests_run == 0
        assert f"[testing] test_command finds no tests: {till.test_command!r}" in str(told.error)
        assert isinstance(told.error, CraError)
        assert 'accept = "untested" says that nothing is tested' in told.error.hint
    with memory_till(tmp_path / "accepted", untested) as till:
        told = till.solve_scripted(testing={"accept": "untested"})
    assert told.ending == ("unproven", "nothing was tested: the test command finds no tests")
    assert told.files["till/money.py"] == MENDED_MONEY
    assert {row.tests_run for row in told.recorded.validations} == {0}


ABRUPT = [Answer(close="before_headers"), Answer(close="before_token")]
LOADING = [Answer(status=500, error="model failed to load")]


@pytest.mark.parametrize(
    ("name", "answers", "kind", "said"),
    [
        ("meta_plan", LOADING, ServerFailed, "failed with status 500: model failed to load"),
        ("part_plan", LOADING, ServerFailed, "failed with status 500: model failed to load"),
        ("implement", ABRUPT, ServerUnreachable, "broke before the first token of coder:3b's answer"),
    ],
)
def test_a_server_that_breaks_ends_the_run(
    till: MemoryTill, name: str, answers: Sequence[Answer], kind: type[CraError], said: str
) -> None:
    title = next(prompt.title for prompt in PROMPTS if prompt.name == name)
    told = till.solve_scripted({title: answers}, models={"retries": 1})
    assert isinstance(told.error, kind)
    assert said in str(told.error)
    assert told.error.hint
    asked = told.recorded.calls_of(name)
    assert [call.site.attempt for call in asked] == list(range(len(answers)))
    newest = told.recorded.calls[-1]
    assert (newest.site.call_type, newest.ending.finish) == (name, f"error:{kind.__name__}")
    assert told.ending == ("failed", newest.ending.error)
    assert told.recorded.reading_of(newest) == ("", "")


def test_a_spent_budget_ends_the_run_as_partial(till: MemoryTill) -> None:
    status, reason = till.solve_scripted({}, orchestrator={"max_tokens": 500}).ending
    assert (status, reason.startswith("budget spent: "), "max_tokens = " in reason) == ("partial", True, True)
    assert till.shown().count(reason) > 0


TOO_LONG = Answer(status=400, error="the input length exceeds the context length")


def press(_: ChatCall, right: str) -> str:
    """Ctrl-C while the model writes."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    return right


@pytest.mark.parametrize("title", [META_PLAN.title, IMPLEMENT.title])
def test_ctrl_c_while_a_model_answers_closes_the_pass(till: MemoryTill, title: str) -> None:
    spoiled: dict[str, list[Spoil]] = {title: [press]}
    told = till.solve_scripted(spoiled)
    assert isinstance(told.error, KeyboardInterrupt)
    assert told.ending == ("interrupted", "interrupted")
    assert told.recorded.run is not None
    assert told.recorded.run.completed_at is None
    assert all(each.completed_at for each in told.recorded.passes)
    assert told.recorded.passes[-1].detail == "stopped: interrupted"
