from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from testing.runs.memory_answers import replacing
from testing.runs.memory_run import MemoryProject, MemoryRun, memory_project, part, step

from clean_room_agent.artifacts.goals import Goals, GoalSource, GoalTest
from clean_room_agent.artifacts.outcomes import Action, AttemptOutcome
from clean_room_agent.artifacts.test_results import Outcome, TestReport
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.steps.after_failure import attempt_seen, signals_of
from clean_room_agent.orchestrator.steps.attempt import Attempt, StepJob, ask, place
from clean_room_agent.orchestrator.steps.checked_attempt import (
    RankedAttempt,
    choose,
    judge,
    normalised_diff,
    why_not,
)
from clean_room_agent.orchestrator.steps.rounds import context_for
from clean_room_agent.orchestrator.test_runs.results import CommandEnd, TestRun

FIRST = Action(kind="retry", rule="first attempt")
RIGHT = replacing("a.py", "a = 0", "a = 1")


def judged(
    project: MemoryProject,
    answer: str,
    *paths: str,
    tests: TestRun | None = None,
    goals: Goals | None = None,
    testing: Mapping[str, Any] | None = None,
    **job: Any,
) -> tuple[MemoryRun, Attempt]:
    """An attempt at a step about these files, judged by the project's tests or by a given run of them."""
    own = StepJob(part=part("p1", "a.py"), constraints="", **{"step": step("s1", *paths), **job})
    memory = project.open(lambda _: answer, testing=testing)
    run = memory.run
    run_baseline(run)
    run.progress.goals = goals or Goals()
    pass_id = f"{run.task.task_id}:impl:p1:s1"
    package = context_for(run, own, None, pass_id, FIRST, [])
    given = ask(run, own, package, FIRST, pass_id=pass_id, number=1)
    attempt = place(run, own, package, given, pass_id=pass_id, earlier=())
    assert attempt.awaits_tests, attempt.detail
    memory.runner.checkout(attempt.change.commit)
    return memory, judge(run, own, package, attempt, tests or memory.runner.run_step())


def test_what_the_tests_say_is_the_attempts_outcome(project: MemoryProject) -> None:
    _, attempt = judged(project, RIGHT, "a.py")
    assert attempt.passed
    assert attempt.judgment is not None
    assert (attempt.detail, attempt.feedback) == ("2 pass, 1 still red", "")


def test_a_change_that_breaks_a_test_says_which(project: MemoryProject) -> None:
    _, attempt = judged(project, replacing("c.py", "c = 1", "c = 2"), "c.py")
    assert attempt.outcome is AttemptOutcome.TESTS_FAILED
    assert "t.py::c" in attempt.feedback
    assert attempt.summary().outcome == "tests failed"


def test_a_change_after_which_a_file_of_tests_cannot_be_loaded_broke_an_import(tmp_path: Path) -> None:
    def loads(files: Mapping[str, str]) -> dict[str, Outcome]:
        """All tests of u.py fail at first, and cannot be loaded once a.py raises an error."""
        goal: dict[str, Outcome] = {"u.py": "error"} if "1 /" in files["a.py"] else {"u.py::a": "failed"}
        return goal | {"t.py::c": "passed"}

    with memory_project(tmp_path, {"a.py": "a = 0\n"}, loads) as project:
        _, attempt = judged(project, replacing("a.py", "a = 0", "a = 1 / 0"), "a.py")
    assert (attempt.outcome, attempt.passed, attempt.missing) == (AttemptOutcome.IMPORT_BROKEN, False, None)
    assert attempt.detail.startswith("the edit broke the import of ")
    assert attempt.detail in attempt.feedback
    assert attempt.summary().outcome == "import broken"
    seen = attempt_seen(attempt, FIRST, None)
    assert seen.message == attempt.detail
    (signal,) = signals_of(attempt)
    assert (signal.category, signal.message) == ("compile_error", attempt.detail)


@pytest.mark.parametrize(("words", "passes"), [("add a case", False), ("remove the old cases", True)])
def test_a_change_of_tests_may_lose_some_only_if_the_words_say_so(
    tmp_path: Path, words: str, passes: bool
) -> None:
    def as_written(files: Mapping[str, str]) -> dict[str, Outcome]:
        names = [line[4:].partition("(")[0] for line in files["test_u.py"].split("\n") if line]
        kept: dict[str, Outcome] = {f"test_u.py::{name}": "passed" for name in names}
        return {**kept, "t.py::c": "failed"}

    two = "def test_a(): pass\ndef test_b(): pass\n"
    with memory_project(tmp_path, {"a.py": "a = 0\n", "test_u.py": two}, as_written) as project:
        own = step("s1", "test_u.py").model_copy(update={"description": words})
        answer = replacing("test_u.py", "def test_a(): pass\n", "")
        _, attempt = judged(project, answer, "test_u.py", step=own)
    assert attempt.passed is passes
    assert ("had 2 tests and has 1, without test_u.py::test_a" in attempt.detail) is not passes


def test_a_last_change_that_leaves_goal_tests_red_is_unfinished(project: MemoryProject) -> None:
    _, attempt = judged(project, replacing("a.py", "a = 0", "a = 7"), "a.py", last=True)
    assert attempt.passed
    assert attempt.unfinished
    assert attempt.detail == "1 pass, 2 still red: no goal test passes yet"
    assert attempt.outcome_so_far is AttemptOutcome.TESTS_FAILED


@pytest.mark.parametrize(
    ("accept", "goal", "text", "unfinished"),
    [
        ("goals", "t.py::a", "a = 1", False),
        ("green", "t.py::a", "a = 1", False),
        ("goals", "t.py::a", "a = 7", True),
        ("goals", "", "a = 1", True),
        ("all-pass", "t.py::a", "a = 1", True),
        ("no-new-failures", "", "a = 1", False),
    ],
)
def test_what_a_last_change_may_leave_red_is_configured(
    tmp_path: Path, accept: str, goal: str, text: str, unfinished: bool
) -> None:
    def two_red(files: Mapping[str, str]) -> dict[str, Outcome]:
        return {"t.py::a": "passed" if "a = 1" in files["a.py"] else "failed", "t.py::b": "failed"}

    goals = Goals(tests=(GoalTest(name=goal, source=GoalSource.REPOSITORY),)) if goal else Goals()
    with memory_project(tmp_path, {"a.py": "a = 0\n"}, two_red) as project:
        answer = replacing("a.py", "a = 0", text)
        _, attempt = judged(project, answer, "a.py", goals=goals, testing={"accept": accept}, last=True)
    assert attempt.unfinished is unfinished


def test_tests_that_ran_out_of_time_are_not_the_same_as_failing_ones(project: MemoryProject) -> None:
    end = CommandEnd(returncode=-9, timed_out=True)
    late = TestRun(
        command="pytest", end=end, report=TestReport(runner="pytest", whole=False, problem="stopped")
    )
    _, attempt = judged(project, RIGHT, "a.py", tests=late)
    assert attempt.outcome is AttemptOutcome.TIMED_OUT


def test_a_command_that_does_not_start_is_the_changes_fault_where_it_starts_without_it(
    project: MemoryProject,
) -> None:
    gone = TestRun(command="pytest", end=CommandEnd(returncode=127, output="pytest: not found"))
    _, attempt = judged(project, RIGHT, "a.py", tests=gone)
    assert attempt.outcome is AttemptOutcome.TESTS_FAILED, "at the head they do run"


def test_a_test_that_comes_and_goes_is_not_held_against_the_change(tmp_path: Path) -> None:
    runs = 0

    def flaky(files: Mapping[str, str]) -> dict[str, Outcome]:
        """t.py::c fails once, in the first run after the baseline."""
        nonlocal runs
        runs += 1
        goal: Outcome = "passed" if "= 1" in files["a.py"] else "failed"
        return {"t.py::a": goal, "t.py::c": "failed" if runs == 2 else "passed"}

    with memory_project(tmp_path, {"a.py": "a = 0\n"}, flaky) as project:
        _, attempt = judged(project, RIGHT, "a.py")
        assert ("unstable_tests", "t.py::c") in project.events()
    assert attempt.passed


def test_a_test_that_its_neighbours_break_is_not_unstable(tmp_path: Path) -> None:
    runs = 0

    def broken_by_others(files: Mapping[str, str]) -> dict[str, Outcome]:
        """After the change, t.py::c passes alone, and fails each time that all tests run."""
        nonlocal runs
        runs += 1
        goal: Outcome = "passed" if "= 1" in files["a.py"] else "failed"
        return {"t.py::a": goal, "t.py::c": "failed" if runs in {2, 4} else "passed"}

    with memory_project(tmp_path, {"a.py": "a = 0\n"}, broken_by_others) as project:
        memory, attempt = judged(project, RIGHT, "a.py")
        assert "unstable_tests" not in [kind for kind, _ in project.events()]
    assert not attempt.passed
    assert attempt.detail == "newly failing: t.py::c"
    assert [command == "pytest" for command in memory.runner.commands_run] == [True, True, False, True]


def diff(*lines: str, at: int = 1) -> str:
    head = f"diff --git a/m.py b/m.py\nindex 1{at}..2{at} 100644\n--- a/m.py\n+++ b/m.py\n@@ -1,3 +{at},3 @@ def f():\n"
    return head + "".join(f"{line}\n" for line in lines)


SMALL = diff("-a", "+b")
LARGE = diff("-a", "+b", "+c", "+d")
SPACED = diff("-a", "+b  ", "+", "+c", "+d")


def candidate(number: int, **facts: Any) -> RankedAttempt:
    base = RankedAttempt(
        number=number, may_stay=True, goals=3, green=1, newly=0, tested=True, placed=True, diff=SMALL
    )
    return replace(base, **facts)


def chosen(*candidates: RankedAttempt) -> int:
    return choose(candidates).number


@pytest.mark.parametrize(
    ("better", "why"),
    [
        ({"green": 2}, "attempt 2 has 2 of 3 goal tests green, this one 1"),
        ({"may_stay": True}, "attempt 2 passed, this one did not"),
        ({"newly": 0}, "attempt 2 broke no test, this one 2"),
        ({"tested": True}, "the edits of attempt 2 came to the tests"),
        ({"placed": True}, "the edits of attempt 2 could be read"),
        ({"diff": SMALL}, "attempt 2 changes less"),
    ],
)
def test_a_candidate_that_does_better_in_one_thing_is_chosen(better: dict[str, Any], why: str) -> None:
    worse: dict[str, dict[str, Any]] = {
        "green": {},
        "may_stay": {"may_stay": False},
        "newly": {"may_stay": False, "newly": 2},
        "tested": {"may_stay": False, "green": 0, "tested": False, "diff": ""},
        "placed": {"may_stay": False, "green": 0, "tested": False, "placed": False, "diff": ""},
        "diff": {"diff": LARGE},
    }
    (name,) = better
    first = candidate(1, **worse[name])
    second = replace(first, number=2, **better)
    assert choose((first, second)) == choose((second, first)) == second
    assert why_not(first, (first, second)) == why


def test_what_may_stay_comes_before_what_turns_more_tests_green_and_breaks_another() -> None:
    assert chosen(candidate(1, may_stay=False, green=3, newly=1), candidate(2, green=1)) == 2


def test_of_the_largest_group_of_equal_changes_the_smallest_is_chosen() -> None:
    candidates = (candidate(1), candidate(2, diff=SPACED), candidate(3, diff=LARGE))
    assert chosen(*candidates) == 3
    assert why_not(candidates[0], candidates) == "more candidates made the change of attempt 3"
    assert why_not(candidates[1], candidates) == "the same change as attempt 3"


def test_of_one_that_broke_nothing_and_turned_nothing_green_that_is_said() -> None:
    harmless = candidate(1, may_stay=False, green=0)
    assert why_not(harmless, (harmless, candidate(2))) == "attempt 2 has 1 of 3 goal tests green, this one 0"


def test_of_candidates_that_differ_in_nothing_the_first_is_chosen() -> None:
    assert chosen(candidate(2), candidate(1), candidate(3)) == 1


def test_a_diff_is_the_same_whatever_its_hashes_blank_lines_and_line_ends() -> None:
    assert normalised_diff(diff("-a", "+b  ", "+", at=7)) == normalised_diff(SMALL)
    assert normalised_diff(diff("-a", "+  b")) != normalised_diff(SMALL)
    assert normalised_diff(SMALL.replace("@@ -1,", "@@ -9,")) != normalised_diff(SMALL)


def test_a_candidate_has_all_there_is_to_have_with_each_goal_test_green_and_nothing_lost() -> None:
    assert candidate(1, green=3).is_full
    assert not candidate(1, green=2).is_full
    assert not candidate(1, green=3, may_stay=False).is_full
    assert candidate(1, green=0, goals=0).is_full
