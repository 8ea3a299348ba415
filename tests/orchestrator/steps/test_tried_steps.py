from collections.abc import Callable, Iterator
from typing import Any

import pytest
from testing.runs.memory_answers import replacing
from testing.runs.memory_run import MemoryProject, MemoryRun, part, step

from clean_room_agent.errors import WindowExceeded
from clean_room_agent.llm.transport import ChatRequest
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.run import StepFailed
from clean_room_agent.orchestrator.solve import run_step
from clean_room_agent.orchestrator.steps.attempt import Attempt, StepJob

JOB = StepJob(part=part("p1", "a.py"), step=step("s1", "a.py"), constraints="")
RIGHT = replacing("a.py", "a = 0", "a = 1")
BREAKS_C = RIGHT + replacing("c.py", "c = 1", "c = 2")
OTHER = replacing("a.py", "a = 0", "a = 7")
NO_RULES: dict[str, Any] = {"recovery": {"rules": ("retry",)}}


def opened(project: MemoryProject, script: Callable[[ChatRequest], str], **tables: Any) -> MemoryRun:
    """A run whose baseline is known."""
    memory = project.open(script, **tables)
    run_baseline(memory.run)
    return memory


def in_turn(*answers: str) -> Callable[[ChatRequest], str]:
    left: Iterator[str] = iter(answers)
    return lambda _: next(left)


def of_any(*paths: str) -> StepJob:
    """A step that may leave some of its files as they are."""
    own = step("s1", *paths).model_copy(update={"any_of_files": True})
    return StepJob(part=JOB.part, step=own, constraints="")


def test_an_attempt_whose_tests_pass_is_the_head_which_the_index_follows_when_it_is_asked(
    project: MemoryProject,
) -> None:
    memory = opened(project, in_turn(RIGHT))
    end = run_step(memory.run, JOB)
    assert isinstance(end, Attempt)
    assert end.detail.startswith("2 pass, 1 still red")
    assert memory.run.commits.head == end.change.commit
    assert project.history.files[memory.run.commits.head]["a.py"] == "a = 1\n"
    assert memory.index.described() == memory.run.commits.base
    memory.run.context.follow_head()
    assert memory.index.described() == memory.run.commits.head
    assert end.judgment is not None
    assert memory.run.progress.accepted is end.judgment.tests
    assert project.history.refs["attempts/p1/s1/1"] == memory.run.commits.head


def test_what_breaks_another_test_is_tried_again_with_what_failed(project: MemoryProject) -> None:
    memory = opened(project, in_turn(BREAKS_C, RIGHT), **NO_RULES)
    end = run_step(memory.run, of_any("a.py", "c.py"))
    second = memory.transport.requests[1].prompt
    assert "t.py::c" in second
    assert isinstance(end, Attempt)
    assert [entry.pass_id.rpartition(":")[2] for entry in memory.run.recorder.passes] == ["s1", "retry_1"]


def test_a_step_is_given_up_after_its_attempts_and_the_head_stays(project: MemoryProject) -> None:
    memory = opened(project, lambda _: "I cannot.", **NO_RULES)
    before = memory.run.commits.head
    end = run_step(memory.run, JOB)
    assert isinstance(end, StepFailed)
    assert end.action.kind == "skip"
    assert end.why.startswith("no_edits: ")
    assert (memory.run.commits.head, memory.runner.tree.clean_at) == (before, before)
    assert len(memory.run.recorder.passes) == 3


def test_a_prompt_that_does_not_fit_ends_the_step(project: MemoryProject) -> None:
    def too_long(_: ChatRequest) -> str:
        raise WindowExceeded("the prompt does not fit", hint="shorten it")

    memory = opened(project, too_long)
    end = run_step(memory.run, JOB)
    assert isinstance(end, StepFailed)
    assert (end.action.kind, end.why) == ("replan", "the prompt does not fit")
    assert [signal.source for signal in end.failures] == ["window"]
    (closed,) = memory.run.recorder.passes
    assert (closed.success, closed.detail) == (False, "the prompt does not fit")


def test_a_last_step_that_turns_nothing_green_is_kept_only_if_nothing_better_comes(
    project: MemoryProject,
) -> None:
    memory = opened(project, in_turn(OTHER, RIGHT, "I cannot.", "I cannot."), **NO_RULES)
    job = StepJob(part=JOB.part, step=JOB.step, constraints="", last=True)
    end = run_step(memory.run, job)
    assert isinstance(end, Attempt)
    assert end.detail == "2 pass, 1 still red: 1 of them beside tests that pass now"
    assert project.history.files[memory.run.commits.head]["a.py"] == "a = 1\n"
    assert ("not_chosen", "a later attempt did better") in project.events()


LAST = StepJob(part=JOB.part, step=JOB.step, constraints="", last=True)
HARMLESS = replacing("a.py", "a = 0", "# a number\na = 0")
AS_HARMLESS = replacing("a.py", "a = 0", "# the number\na = 0")


def test_the_next_prompt_says_that_no_goal_test_passes_yet(project: MemoryProject) -> None:
    memory = opened(project, in_turn(HARMLESS, RIGHT, RIGHT), **NO_RULES)
    end = run_step(memory.run, LAST)
    assert isinstance(end, Attempt)
    prompt = memory.transport.requests[1].prompt
    assert "Goal tests (they failed before this step): 0 of 2 pass now." in prompt
    assert "fails as before" in prompt
    assert "they broke nothing" not in prompt
    assert "Result: applied_and_passed" not in prompt


@pytest.mark.parametrize("later", [AS_HARMLESS, OTHER, "I would rather not."])
def test_where_no_attempt_does_better_the_first_stays(project: MemoryProject, later: str) -> None:
    answers = iter([HARMLESS])
    memory = opened(project, lambda _: next(answers, later))
    end = run_step(memory.run, LAST)
    assert isinstance(end, Attempt)
    assert project.history.files[memory.run.commits.head]["a.py"] == "# a number\na = 0\n"
    memory.run.context.follow_head()
    assert memory.runner.tree.clean_at == memory.run.commits.head


def test_a_target_that_was_forgotten_is_asked_for_once_and_another_one_too(project: MemoryProject) -> None:
    job = StepJob(part=JOB.part, step=step("s1", "a.py", "b.py"), constraints="")
    only_b = replacing("b.py", "b = 0", "b = 1")
    memory = opened(project, in_turn(RIGHT, only_b, RIGHT), **NO_RULES)
    end = run_step(memory.run, job)
    assert isinstance(end, Attempt)
    assert end.detail == "2 pass, 1 still red; left as it was: modify b.py"
    details = [entry.detail for entry in memory.run.recorder.passes]
    assert details[:2] == [
        f"refused: nothing was applied, because the step also has to: modify {name}.py" for name in "ba"
    ]
    assert "because the step also has to: modify b.py" in memory.transport.requests[1].prompt
    assert ("target_untouched", "modify b.py") in project.events()


def test_an_attempt_whose_commit_git_lost_is_made_again(project: MemoryProject) -> None:
    first = opened(project, in_turn(RIGHT))
    run_step(first.run, JOB)
    project.history.files.pop(first.run.commits.head)
    again = project.open(in_turn(RIGHT), resumed=True)
    run_baseline(again.run)
    assert isinstance(run_step(again.run, JOB), Attempt)
    assert again.asked == ["impl:p1:s1 implement"]
