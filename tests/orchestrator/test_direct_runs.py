"""Whole runs by the direct route: what a person sees of them, and that they are replayed."""

from pathlib import Path

import pytest
from testing.runs.solving import MENDED_MONEY, MONEY_TESTS, TILL, Script, make_project
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.execute.implement import IMPLEMENT

DIRECT = {"route": "auto"}


def test_a_task_with_a_red_test_is_done_without_a_plan_and_replayed(tmp_path: Path) -> None:
    till = make_project(tmp_path)
    told = till.solve_scripted(None, solve=DIRECT)
    assert (told.code, told.traces) == (0, {}), told.err
    assert "complete: shown by tests.test_money.MoneyTest.test_split_keeps_every_cent" in told.out
    assert "asking about split: candidate 1 of 1: 4 pass" in told.err
    assert [(row.attempt, row.outcome) for row in told.recorded.attempts] == [(1, "applied_and_passed")]
    assert till.run_here("check", "--record")[0] == 0
    code, out, err = till.run_here("replay", "@")
    assert (code, out.partition(":")[0]) == (0, "the same"), err
    shown = till.run_here("show", "@", "--why", "till/money.py")[1]
    assert "ran 1 time under the goal tests" in shown


def test_each_candidate_is_shown_with_what_its_goal_tests_gave(tmp_path: Path) -> None:
    till = make_project(tmp_path)
    wrong = "```python\ndef split(cents, people):\n    return [1] * people\n```"
    told = till.solve_scripted({"Write one definition anew": [wrong]}, solve=DIRECT)
    assert told.code == 0, told.err
    assert "applied_and_passed" in told.recorded.outcomes
    shown = till.run_here("show", "@/direct/change")[1]
    assert "attempt 1: tests failed: tests.test_money.MoneyTest.test_split_keeps_every_cent: 3" in shown


def test_a_candidate_that_breaks_a_documented_example_is_not_accepted(tmp_path: Path) -> None:
    documented = {
        path: str(text).replace("person.", "person.\n\n    >>> split(1, 1)\n    [1]\n    ")
        for path, text in TILL.items()
    }
    mended = MENDED_MONEY.replace("person.", "person.\n\n    >>> split(1, 1)\n    [1]\n    ")
    till = make_project(tmp_path, documented, {"till/money.py": mended})
    wrong = "```python\ndef split(cents, people):\n    return [cents - 2, 2][:people]\n```"
    wrong = wrong.replace("[cents - 2, 2][:people]", "[3, 3, 3] if cents == 9 else [cents + people - 3]")
    told = till.solve_scripted({"Write one definition anew": [wrong]}, solve=DIRECT)
    assert told.code == 0, told.err
    shown = till.run_here("show", "@/direct/change")[1]
    assert "the documented example split(1, 1) gives [-1], not [1] as before" in shown


def test_the_planned_route_is_told_what_was_tried_in_vain(tmp_path: Path) -> None:
    till = make_project(tmp_path)
    wrong = "```python\ndef split(cents, people):\n    return [1] * people\n```"
    spoiled = {"Write one definition anew": [wrong] * 20, IMPLEMENT.title: ["I cannot."]}
    told = till.solve_scripted(spoiled, solve={**DIRECT, "direct_tokens": 200})
    assert told.code == 0, told.err
    line = "Tried before, and not enough:\n- split with return [1] * people: 3"
    prompts = [call.request.prompt for call in told.recorded.calls_of("implement")]
    assert len(prompts) > 1
    assert all(line in prompt for prompt in prompts)


def test_a_hint_is_first_shown_where_the_direct_route_was_gone_in_vain(tmp_path: Path) -> None:
    till = make_project(tmp_path)
    wrong = "```python\ndef split(cents, people):\n    return [1] * people\n```"
    spoiled = {"Write one definition anew": [wrong] * 20, IMPLEMENT.title: ["I cannot."] * 20}
    limits = {"direct_tokens": 200, "max_attempts": 1}
    failed = till.solve_scripted(spoiled, solve={**DIRECT, **limits})
    assert failed.code == 1, failed.err
    with OllamaServer(Script(till.oracle)) as server:
        till.configure(server.base_url, solve={**DIRECT, **limits})
        told = till.cra("solve", "--resume", "@", "--hint", "Use divmod.")
    assert told.code == 0, told.err
    (shown,) = [call for call in told.recorded.calls_of("function") if "Use divmod." in call.request.prompt]
    assert shown.site.pass_id.endswith(":impl:direct:hint-1")
    assert told.recorded.outcomes[-1] == "applied_and_passed"
    assert till.run_here("check", "--record")[0] == 0
    code, out, err = till.run_here("replay", "@")
    assert (code, out.partition(":")[0]) == (0, "the same"), err


GREEN_TESTS = MONEY_TESTS.replace("sum(split(100, 3)), 100", "sum(split(99, 3)), 99")
"""No test is red."""
GUESS = {"Say what a call should give": ["split(7, 2) == [4, 3]"] * 3}
LOSES = "split() in till/money.py loses cents"
PLAINLY = "Let split lose no cents"


def test_a_test_that_a_model_guessed_guides_the_direct_route_and_proves_nothing(tmp_path: Path) -> None:
    till = make_project(tmp_path, {**TILL, "tests/test_money.py": GREEN_TESTS}, task=LOSES)
    told = till.solve_scripted(GUESS, solve=DIRECT)
    assert told.code == 5, told.err
    assert "a model's guess guides the search: split(7, 2): [3, 3], wanted [4, 3]" in told.err
    assert "only a test that a model wrote went from red to green" in told.out
    assert told.recorded.calls_of("meta_plan") == []
    assert b"divmod" in till.branch_file("till/money.py")
    assert till.branch_file("tests/test_money.py") == GREEN_TESTS.encode()
    asked = told.recorded.calls_of("goal_test")
    assert "split(7, 2) == [4, 3]" in till.run_here("show", f"@/call:{asked[0].id}", "--response")[1]
    assert "Say what a call should give" in till.run_here("show", "@/goals", "--prompt")[1]
    code, out, err = till.run_here("replay", "@")
    assert (code, out.partition(":")[0]) == (0, "the same"), err


@pytest.mark.parametrize("task", [LOSES, PLAINLY])
def test_a_run_that_plans_nothing_asks_for_the_one_function_that_the_task_names(
    tmp_path: Path, task: str
) -> None:
    till = make_project(tmp_path, {**TILL, "tests/test_money.py": GREEN_TESTS}, task=task)
    nothing = {"Say what a call should give": ["nothing"] * 3}
    told = till.solve_scripted(nothing, solve=DIRECT, orchestrator={"planning": "none"})
    assert told.code == 5, told.err
    assert "nothing shows that the task is done" in told.out
    assert [call.site.call_type for call in told.recorded.calls if call.site.call_type != "window_probe"] == [
        *["goal_test"] * 3,
        "function",
    ]
    assert b"divmod" in till.branch_file("till/money.py")
    assert "the task names it" in till.run_here("show", "@", "--why", "till/money.py")[1]


def test_where_the_task_names_no_function_nothing_is_asked_directly(tmp_path: Path) -> None:
    till = make_project(
        tmp_path, {**TILL, "tests/test_money.py": GREEN_TESTS}, task="till/money.py loses cents"
    )
    told = till.solve_scripted(None, solve=DIRECT, orchestrator={"planning": "none"})
    assert told.code == 5, told.err
    assert told.recorded.calls_of("function") == []


def test_a_guess_that_leads_nowhere_is_in_no_tree_that_is_planned_for(tmp_path: Path) -> None:
    till = make_project(tmp_path, {**TILL, "tests/test_money.py": GREEN_TESTS}, task=LOSES)
    wrong = {"Say what a call should give": ["split(7, 2) == [5, 3]"] * 3}
    told = till.solve_scripted(wrong, solve={**DIRECT, "direct_tokens": 200})
    assert told.code == 5, told.err
    assert len(told.recorded.calls_of("meta_plan")) == 1
    assert "nothing shows that the task is done" in told.out
    assert till.branch_file("tests/test_money.py") == GREEN_TESTS.encode()
    assert b"divmod" in till.branch_file("till/money.py")
