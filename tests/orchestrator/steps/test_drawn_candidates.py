"""Attempts that draw several candidates, in whole runs in memory: what is chosen, what it costs, and that a run goes on and replays."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testing.runs.memory_till import DEAD, MemoryTill, MemoryTold, memory_till
from testing.runs.solving import MONEY_TESTS, ONE_ATTEMPT, TILL, Script, edit
from testing.runs.spoiled_answers import SPLIT, WRONG
from testing.servers.ollama_script import Answer, Answerer, ChatCall

from clean_room_agent.execute.implement import IMPLEMENT

PARTLY = edit(
    SPLIT, "    share = cents // people\n    return [cents - share * (people - 1)] + [share] * (people - 1)"
)
"""Keeps every cent, and spreads them unevenly."""
EVENLY = "\n    def test_shares_are_even(self):\n        self.assertEqual(split(101, 3), [34, 34, 33])\n"
HARMLESS = edit(SPLIT, f"    # even shares\n{SPLIT}")
FAILED = "insufficient_context"
"""What `WRONG` comes to: the test that it breaks is not shown."""
ONCE = dict(ONE_ATTEMPT["solve"])


@pytest.fixture
def two_goals(tmp_path: Path) -> Iterator[MemoryTill]:
    """The till, with a second test that only the right answer turns green."""
    with two_goals_in(tmp_path) as made:
        yield made


def two_goals_in(folder: Path) -> Any:
    files = {path: str(text) for path, text in TILL.items()}
    return memory_till(folder, {**files, "tests/test_money.py": MONEY_TESTS + EVENLY})


def drawn(project: MemoryTill, answers: list[Any], samples: int = 3, **tables: Any) -> MemoryTold:
    solve = {**ONCE, "samples": samples, **tables.pop("solve", {})}
    recovery = {"replans_per_part": 0, **tables.pop("recovery", {})}
    return project.solve_scripted({IMPLEMENT.title: answers}, solve=solve, recovery=recovery, **tables)


def not_chosen(told: MemoryTold) -> list[tuple[str, str]]:
    """The number of each attempt that lost, and why."""
    return [
        (event.task_id.rpartition(":")[2], event.detail)
        for event in told.recorded.events
        if event.kind == "not_chosen"
    ]


def test_the_best_of_a_round_is_accepted_and_the_losers_are_shown(two_goals: MemoryTill) -> None:
    told = drawn(two_goals, [WRONG, PARTLY, HARMLESS])
    assert told.ending[0] == "partial"
    assert told.recorded.outcomes == [FAILED, "applied_and_passed", "applied_and_passed"]
    assert "people - 1" in told.files["till/money.py"]
    assert "even shares" not in told.files["till/money.py"]
    shown = two_goals.shown("p1/s1")
    assert "not chosen: attempt 2 passed, this one did not" in shown, shown
    assert "not chosen: attempt 2 has 1 of 2 goal tests green, this one 0" in shown, shown


def test_the_next_attempt_is_told_of_the_best_alone_and_draws_as_often(till: MemoryTill) -> None:
    other = edit(SPLIT, "    raise ValueError(cents)")
    told = drawn(till, [WRONG, "I cannot.", "I cannot.", other], solve={"max_attempts": 2, "samples": 2})
    assert told.ending == ("complete", "")
    asked = told.recorded.calls_of("implement")
    assert "return [cents]" in asked[-1].request.prompt
    assert asked[-1].request.prompt == asked[-2].request.prompt
    assert "I cannot" not in asked[-1].request.prompt
    assert json.loads(told.recorded.recoveries[0].state)["attempts"][0]["candidates"] == 2


def test_a_round_that_a_budget_ended_is_over_when_the_run_goes_on_with_more(two_goals: MemoryTill) -> None:
    drawn(two_goals, [PARTLY] * 3, samples=5, orchestrator={"max_calls": 5})
    more = {"max_calls": 50}
    again = two_goals.resume(Script(two_goals.oracle, {IMPLEMENT.title: [HARMLESS]}), orchestrator=more)
    assert again.error is None
    assert len(again.recorded.attempts) == 3
    assert "people - 1" in again.files["till/money.py"]


@pytest.mark.parametrize("redraw", [1, 4])
def test_what_a_round_drew_from_the_unchanged_prompt_counts_for_the_redraw(
    till: MemoryTill, redraw: int
) -> None:
    told = drawn(till, [WRONG] * 12, solve={"max_attempts": 2}, recovery={"redraw": redraw})
    unchanged = [row for row in told.recorded.recoveries if "unchanged prompt" in row.rule]
    assert len(unchanged) == (1 if redraw > 2 else 0)


def story(told: MemoryTold) -> list[Any]:
    """What must not depend on whether the run was interrupted."""
    recorded = told.recorded
    return [
        recorded.ending,
        recorded.outcomes,
        [row.diff for row in recorded.attempts],
        sorted(not_chosen(told)),
        len([call for call in recorded.calls_of("implement") if call.answer.response]),
    ]


def ended(project: MemoryTill, answerer: Answerer, *, breaks: bool, **tables: Any) -> list[Any]:
    """The story of a run that went on where it was interrupted, and replays."""
    told = project.solve(answerer, **tables)
    if breaks:
        assert told.error is not None
        told = project.resume(answerer)
    assert told.ending[0] == "partial"
    assert story(project.replay()) == story(told)
    return story(told)


def in_turn(folder: Path, dies_at: int = 0) -> list[Any]:
    """The story of a run whose candidates are drawn one after the other; where the server dies before one, it goes on."""
    answers: list[Any] = [WRONG, PARTLY, HARMLESS, HARMLESS]
    if dies_at:
        answers.insert(dies_at - 1, DEAD)
    with two_goals_in(folder) as project:
        script = Script(project.oracle, {IMPLEMENT.title: answers})
        return ended(project, script, breaks=dies_at > 0, solve={**ONCE, "samples": 4})


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The story of the run that nothing breaks off."""
    return in_turn(tmp_path_factory.mktemp("undisturbed"))


def by_seed(project: MemoryTill, answers: dict[int, Any], dies_once_at: int = 0) -> Answerer:
    """Answers to edit prompts by the seed that is asked for, in whatever order they come."""
    right = Script(project.oracle)
    deaths = [dies_once_at]

    def answer(call: ChatCall) -> Answer | str:
        if call.title != IMPLEMENT.title or call.options["seed"] not in answers:
            return right(call)
        if call.options["seed"] == deaths[0]:
            deaths[0] = 0
            return DEAD
        return str(answers[call.options["seed"]])

    return answer


@pytest.mark.parametrize(("parallel", "dies_at"), [(3, 0), (2, 2)])
def test_candidates_made_at_a_time_end_the_same_and_go_on_and_replay(
    tmp_path: Path, undisturbed: list[Any], parallel: int, dies_at: int
) -> None:
    answers = {1: WRONG, 2: PARTLY, 3: HARMLESS, 4: HARMLESS}
    with two_goals_in(tmp_path) as project:
        tables = {"solve": {**ONCE, "samples": 4}, "testing": {"parallel": parallel}}
        found = ended(project, by_seed(project, answers, dies_at), breaks=dies_at > 0, **tables)
    assert found[:-1] == undisturbed[:-1]
