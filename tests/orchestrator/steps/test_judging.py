from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testing.runs.memory_answers import replacing
from testing.runs.memory_run import MemoryProject, MemoryRun, memory_project, part, step

from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.recovery.situation import Action
from clean_room_agent.orchestrator.steps.attempt import Attempt, Draw, StepJob, ask, place
from clean_room_agent.orchestrator.steps.judging import judge
from clean_room_agent.orchestrator.steps.step_context import context_for
from clean_room_agent.orchestrator.testing.results import CommandEnd, Outcome, TestReport, TestRun

FIRST = Action(kind="retry", rule="first attempt")
RIGHT = replacing("a.py", "a = 0", "a = 1")


def judged(
    project: MemoryProject, answer: str, *paths: str, tests: TestRun | None = None, **job: Any
) -> tuple[MemoryRun, Attempt]:
    """An attempt at a step about these files, judged by the project's tests or by a given run of them."""
    own = StepJob(part=part("p1", "a.py"), step=step("s1", *paths), constraints="", **job)
    memory = project.open(lambda _: answer)
    run = memory.run
    run_baseline(run)
    pass_id = f"{run.task.task_id}:impl:p1:s1"
    package = context_for(run, own, None, pass_id, FIRST, [])
    given = ask(run, own, package, pass_id=pass_id, number=1, draw=Draw(action=FIRST))
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


def test_a_last_change_that_leaves_goal_tests_red_is_unfinished(project: MemoryProject) -> None:
    _, attempt = judged(project, replacing("a.py", "a = 0", "a = 7"), "a.py", last=True)
    assert attempt.passed
    assert attempt.unfinished
    assert attempt.detail == "1 pass, 2 still red: no goal test passes yet"
    assert attempt.outcome_so_far is AttemptOutcome.TESTS_FAILED


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
