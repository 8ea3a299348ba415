"""An attempt that draws several candidates: what is chosen, what it costs, and that it goes on and replays."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from testing.runs.solving import MONEY_TESTS, TILL, UNITTEST, Project, Script, Told, edit, make_project
from testing.servers.ollama_script import Answer, Answerer, ChatCall
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.artifacts.names import short_id
from clean_room_agent.execute.prompts.implement import IMPLEMENT

SPLIT = "    share = cents // people\n    return [share] * people"
WRONG = edit(SPLIT, "    return [cents]")
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


def not_chosen(told: Told) -> list[tuple[str, str]]:
    """The number of each attempt that lost, and why."""
    return [
        (event.task_id.rpartition(":")[2], event.detail)
        for event in told.recorded.events
        if event.kind == "not_chosen"
    ]


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
    run = short_id(told.recorded.calls[0].site.pass_id)
    shown = project.cra("show", f"{run}/p1/s1").out
    assert "not chosen: attempt 2 passed, this one did not" in shown, shown
    assert "not chosen: attempt 2 has 1 of 2 goal tests green, this one 0" in shown, shown
    change = project.cra("show", run, "--diff").out
    assert "even shares" not in change, change
    assert project.cra("show", run, "--why", "till/money.py").code == 0


def test_the_next_attempt_is_told_of_the_best_alone_and_draws_as_often(till: Project) -> None:
    other = edit(SPLIT, "    raise ValueError(cents)")
    told = drawn(till, [WRONG, "I cannot.", "I cannot.", other], solve={"max_attempts": 2, "samples": 2})
    assert (told.code, told.traces) == (0, {}), told.err
    asked = told.recorded.calls_of("implement")
    assert "return [cents]" in asked[-1].request.prompt
    assert asked[-1].request.prompt == asked[-2].request.prompt
    assert "I cannot" not in asked[-1].request.prompt
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


def in_turn(folder: Path, dies_at: int = 0) -> list[Any]:
    """The story of a run whose candidates are drawn one after the other; where the server dies before one, it goes on."""
    project = two_goals(folder)
    answers: list[Any] = [WRONG, PARTLY, HARMLESS, HARMLESS]
    if dies_at:
        answers.insert(dies_at - 1, dead)
    with OllamaServer(Script(project.oracle, {IMPLEMENT.title: answers})) as server:
        told = project.solve(server, solve={**ONE_ATTEMPT, "samples": 4})
        return ended(project, told, goes_on=dies_at > 0)


def ended(project: Project, told: Told, *, goes_on: bool) -> list[Any]:
    """The story of a run that went on where it was broken off, and replays."""
    if goes_on:
        assert (told.code, told.traces) == (3, {}), told.err
        assert told.recorded.run is not None
        told = project.cra("solve", "--resume", told.recorded.run.task_id[:8])
    assert (told.code, told.traces) == (4, {}), told.err
    assert told.recorded.run is not None
    assert project.cra("replay", told.recorded.run.task_id[:8]).code == 0
    return story(told)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The story of the run that nothing breaks off."""
    return in_turn(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("dies_at", [2, 4])
def test_a_run_broken_off_in_a_round_ends_the_same_and_replays(
    tmp_path: Path, whole: list[Any], dies_at: int
) -> None:
    broken = in_turn(tmp_path, dies_at)
    broken[-1] -= 1  # the call that failed
    assert broken == whole


def by_seed(project: Project, answers: dict[int, Any], dies_once_at: int = 0) -> Answerer:
    """Answers to edit prompts by the seed that is asked for, in whatever order they come."""
    right = Script(project.oracle)
    deaths = [dies_once_at]

    def answer(call: ChatCall) -> Answer | str:
        if call.title != IMPLEMENT.title or call.options["seed"] not in answers:
            return right(call)
        if call.options["seed"] == deaths[0]:
            deaths[0] = 0
            return dead(call, "")
        return str(answers[call.options["seed"]])

    return answer


@pytest.mark.parametrize(("parallel", "dies_at"), [(1, 0), (3, 0), (2, 2), (2, 3)])
def test_candidates_made_at_a_time_end_the_same_and_go_on_and_replay(
    tmp_path: Path, whole: list[Any], parallel: int, dies_at: int
) -> None:
    project = two_goals(tmp_path)
    answers = {1: WRONG, 2: PARTLY, 3: HARMLESS, 4: HARMLESS}
    with OllamaServer(by_seed(project, answers, dies_at)) as server:
        solve = {**ONE_ATTEMPT, "samples": 4}
        told = project.solve(server, solve=solve, testing={"parallel": parallel})
        assert ended(project, told, goes_on=dies_at > 0)[:-1] == whole[:-1]


def test_what_is_made_at_a_time_ends_together(till: Project) -> None:
    with OllamaServer(by_seed(till, {1: WRONG, 4: WRONG})) as server:
        solve = {**ONE_ATTEMPT, "samples": 6}
        told = till.solve(server, solve=solve, testing={"parallel": 2})
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.outcomes == [FAILED, "applied_and_passed"]
    spent = [(row.total_tokens or 0) > 0 for row in told.recorded.passes if ":impl:" in row.task_id]
    assert spent == [True, True]
    assert len({row.task_run_id for row in told.recorded.attempts}) == 2


SIGNALLER = """\
import os, pathlib, sys, time

number, flag = int(sys.argv[1]), pathlib.Path(sys.argv[2])
if os.getcwd().endswith("-2") and not flag.exists():
    flag.touch()
    pid = os.getppid()
    while b"clean_room_agent\\0solve" not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
        pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(pid, number)
    time.sleep(3600)
"""
"""A test command that, in the second worktree, sends a signal to the run itself, once, and does not end."""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_run_ended_while_candidates_are_tested_leaves_no_worktree_and_goes_on(
    tmp_path: Path, number: int, code: int
) -> None:
    script, flag = tmp_path / "signaller.py", tmp_path / "flag"
    script.write_text(SIGNALLER)
    command = f"{sys.executable} {script} {int(number)} {flag} && {UNITTEST}"
    project = make_project(tmp_path, test_command=command)
    tables: dict[str, Any] = {
        "solve": {**ONE_ATTEMPT, "samples": 2},
        "testing": {"test_command": command, "parallel": 2},
    }
    with OllamaServer(by_seed(project, {1: WRONG})) as server:
        project.configure(server.base_url, **tables)
        told = project.cra_process("solve", project.task, "--repo", str(project.top))
        assert told.code == code, told.err
        assert len(told.worktrees) == (0 if code == 130 else 4), "each by its folder and by its note in git"
        assert told.recorded.run is not None
        told = project.cra("solve", "--resume", told.recorded.run.task_id[:8])
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.outcomes == [FAILED, "applied_and_passed"]
