"""An attempt that draws several candidates: what is chosen, what it costs, and that it goes on and replays."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.ollama_script import Answer, ChatCall
from tests.fakes.ollama_server import OllamaServer
from tests.fakes.solving import MONEY_TESTS, TILL, Project, Script, Told, edit, make_project

from clean_room_agent.artifacts.ids import short_id
from clean_room_agent.execute.prompts.implement import IMPLEMENT

SPLIT = "    share = cents // people\n    return [share] * people"
WRONG = edit(SPLIT, "    return [cents]")
WRONG_IN_OTHER_WORDS = f"Here it is.\n{WRONG}\nDone."
SAME_TREE = (
    '<edit file="till/money.py" symbol="split">\n<replacement>\ndef split(cents, people):\n'
    '    """The shares of a bill, one for each person."""\n    return [cents]\n</replacement>\n</edit>\n'
)
PARTLY = edit(
    SPLIT, "    share = cents // people\n    return [cents - share * (people - 1)] + [share] * (people - 1)"
)
"""Keeps every cent, and spreads them unevenly."""
EVENLY = "\n    def test_shares_are_even(self):\n        self.assertEqual(split(101, 3), [34, 34, 33])\n"
HARMLESS = edit(SPLIT, f"    # even shares\n{SPLIT}")
FAILED = "insufficient_context"
"""What `WRONG` comes to: the test that it breaks is not shown."""
ONE_ATTEMPT = {"max_attempts": 1, "max_refinement_loops": 0}


def cut(_: ChatCall, right: str) -> Answer:
    """The right answer, cut off in its middle."""
    return Answer(text=right[: len(right) // 2], done_reason="length")


def dead(_: ChatCall, right: str) -> Answer:
    """No answer: the server dies."""
    return Answer(status=500, error=f"llama runner process has unexpectedly stopped after {len(right)} bytes")


def two_goals(folder: Path) -> Project:
    """The till, with a second test that only the right answer turns green."""
    return make_project(folder, {**TILL, "tests/test_money.py": MONEY_TESTS + EVENLY})


def drawn(project: Project, answers: list[Any], samples: int = 3, **tables: Any) -> Told:
    solve = {**ONE_ATTEMPT, "samples": samples, **tables.pop("solve", {})}
    recovery = {"replans_per_part": 0, **tables.pop("recovery", {})}
    return project.solve_scripted({IMPLEMENT.title: answers}, solve=solve, recovery=recovery, **tables)


def samplings(told: Told) -> list[tuple[float, int]]:
    options = [json.loads(call.request_body)["options"] for call in told.recorded.calls_of("implement")]
    return [(each["temperature"], each["seed"]) for each in options]


def not_chosen(told: Told) -> list[tuple[str, str]]:
    """The number of each attempt that lost, and why."""
    return [
        (event.task_id.rpartition(":")[2], event.detail)
        for event in told.recorded.events
        if event.kind == "not_chosen"
    ]


def test_a_round_stops_at_the_first_that_turns_all_goal_tests_green(till: Project) -> None:
    told = drawn(till, [WRONG], samples=5)
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.outcomes == [FAILED, "applied_and_passed"]
    first, second = told.recorded.calls_of("implement")
    assert first.prompt == second.prompt
    assert samplings(told) == [(0.0, 1), (0.7, 2)]
    assert told.recorded.actions == []
    assert not_chosen(told) == [("s1", "attempt 2 passed, this one did not")]


def test_one_that_passes_is_drawn_on_from_while_a_goal_test_is_red(tmp_path: Path) -> None:
    told = drawn(two_goals(tmp_path), [PARTLY])
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.outcomes == ["applied_and_passed"] * 2
    assert not_chosen(told) == [("s1", "attempt 2 has 2 of 2 goal tests green, this one 1")]


def test_the_best_of_a_round_is_accepted_and_the_losers_are_shown(tmp_path: Path) -> None:
    project = two_goals(tmp_path)
    told = drawn(project, [WRONG, PARTLY, HARMLESS])
    assert (told.code, told.traces) == (4, {}), told.err
    assert told.recorded.outcomes == [FAILED, "applied_and_passed", "applied_and_passed"]
    assert b"people - 1" in project.branch_file("till/money.py")
    run = short_id(told.recorded.calls[0].task_id)
    shown = project.cra("show", f"{run}/p1/s1").out
    assert "not chosen: attempt 2 passed, this one did not" in shown, shown
    assert "not chosen: attempt 2 has 1 of 2 goal tests green, this one 0" in shown, shown
    change = project.cra("show", run, "--diff").out
    assert "even shares" not in change, change
    assert project.cra("show", run, "--why", "till/money.py").code == 0


def test_equal_answers_and_equal_trees_are_tested_once(till: Project) -> None:
    told = drawn(till, [WRONG, WRONG_IN_OTHER_WORDS, SAME_TREE])
    assert told.code == 1, told.err
    assert told.recorded.outcomes == [FAILED] * 3
    assert len({row.commit_hash for row in told.recorded.attempts}) == 1
    assert {detail for _, detail in not_chosen(told)} == {"the same change as attempt 1"}


def test_the_next_attempt_is_told_of_the_best_alone_and_draws_as_often(till: Project) -> None:
    other = edit(SPLIT, "    raise ValueError(cents)")
    told = drawn(till, [WRONG, "I cannot.", "I cannot.", other], solve={"max_attempts": 2, "samples": 2})
    assert (told.code, told.traces) == (0, {}), told.err
    asked = told.recorded.calls_of("implement")
    assert "return [cents]" in asked[-1].prompt
    assert asked[-1].prompt == asked[-2].prompt
    assert "I cannot" not in asked[-1].prompt
    assert json.loads(told.recorded.recoveries[0].state)["step"]["attempts"][0]["candidates"] == 2


def test_a_round_counts_as_one_attempt(till: Project) -> None:
    told = drawn(till, [WRONG] * 9, solve={"max_attempts": 2})
    assert (told.code, len(told.recorded.attempts)) == (1, 6), told.err


def test_a_budget_that_ends_in_a_round_ends_it(tmp_path: Path) -> None:
    project = two_goals(tmp_path)
    told = drawn(project, [PARTLY] * 5, samples=5, orchestrator={"max_calls": 9})
    assert (told.code, len(told.recorded.attempts)) == (4, 3), told.err
    assert len(told.recorded.calls) + len(told.recorded.probes) == 9
    assert b"people - 1" in project.branch_file("till/money.py")


def test_the_flag_takes_the_place_of_the_setting(till: Project) -> None:
    told = till.solve_scripted({IMPLEMENT.title: [WRONG]}, "--samples", "2", solve=ONE_ATTEMPT)
    assert (told.code, len(told.recorded.attempts)) == (0, 2), told.err


def test_an_answer_that_was_cut_off_is_not_drawn_again_without_more_space(till: Project) -> None:
    told = drawn(till, [cut], solve={"max_attempts": 2})
    assert (told.code, told.recorded.actions) == (0, ["retry"]), told.err
    assert told.recorded.outcomes == ["truncated", "applied_and_passed"]


@pytest.mark.parametrize("redraw", [1, 4])
def test_what_a_round_drew_from_the_unchanged_prompt_counts_for_the_redraw(
    till: Project, redraw: int
) -> None:
    told = drawn(
        till,
        [WRONG] * 12,
        solve={"max_attempts": 2},
        recovery={"redraw": redraw},
    )
    unchanged = [row for row in told.recorded.recoveries if "unchanged prompt" in row.rule]
    assert len(unchanged) == (1 if redraw > 2 else 0)


def story(told: Told) -> list[Any]:
    """What must not depend on whether the run was broken off."""
    recorded = told.recorded
    return [
        recorded.ending,
        recorded.outcomes,
        [row.diff for row in recorded.attempts],
        sorted(not_chosen(told)),
        len(recorded.calls_of("implement")),
    ]


@pytest.mark.parametrize("dies_at", [2, 3, 4])
def test_a_run_broken_off_in_a_round_ends_the_same_and_replays(tmp_path: Path, dies_at: int) -> None:
    stories, codes = [], []
    for name, broken in (("whole", False), ("broken", True)):
        project = two_goals(tmp_path / name)
        answers: list[Any] = [WRONG, PARTLY, HARMLESS, HARMLESS]
        if broken:
            answers.insert(dies_at - 1, dead)
        with OllamaServer(Script(project.oracle, {IMPLEMENT.title: answers})) as server:
            told = project.solve(server, solve={**ONE_ATTEMPT, "samples": 4})
            if broken:
                assert told.recorded.run is not None
                told = project.cra("solve", "--resume", told.recorded.run.task_id[:8])
        assert (told.code, told.traces) == (4, {}), told.err
        assert told.recorded.run is not None
        codes.append(project.cra("replay", told.recorded.run.task_id[:8]).code)
        stories.append(story(told))
    stories[1][-1] -= 1  # the call that failed
    assert stories[0] == stories[1]
    assert codes == [0, 0]
