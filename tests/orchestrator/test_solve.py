"""The order of passes, on a project in memory."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from testing.runs.memory_answers import replacing, steps_answer
from testing.runs.memory_run import MemoryProject, memory_project, part, part_plan, step

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.artifacts.plans import MetaPlan
from clean_room_agent.artifacts.test_results import Outcome
from clean_room_agent.errors import ServerFailed
from clean_room_agent.llm.transport import ChatRequest
from clean_room_agent.orchestrator.finishing import Solved
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.solve import solve
from clean_room_agent.orchestrator.task import PlanGiven

FILES = {"a.py": "a = 0\n", "b.py": "b = 0\n"}
"""Each file has a test that passes once its number is 1."""
BOTH = PlanGiven(meta_plan=MetaPlan(task_summary="x", parts=(part("p1", "a.py"), part("p2", "b.py"))))


def ones(files: Mapping[str, str]) -> dict[str, Outcome]:
    return {f"t.py::{path[0]}": "passed" if "= 1" in text else "failed" for path, text in files.items()}


def setting(path: str) -> str:
    """An answer that sets the file's number."""
    return replacing(path, f"{path[0]} = 0", f"{path[0]} = 1")


def right(request: ChatRequest) -> str:
    """Plans a step for the part's file, and sets the number of the file that the step names."""
    name = request.identity.prompt
    if name == "part_plan":
        return steps_answer("b.py" if request.identity.pass_id.endswith("p2") else "a.py")
    if name == "implement":
        return setting("b.py" if ":p2:" in request.identity.pass_id else "a.py")
    raise AssertionError(name)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[MemoryProject]:
    with memory_project(tmp_path, FILES, ones) as made:
        yield made


def solved(
    project: MemoryProject,
    script: Callable[[ChatRequest], str],
    given: PlanGiven = BOTH,
    **tables: Any,
) -> tuple[Solved, list[str]]:
    """How the run ended, and the passes that asked something, each once."""
    memory = project.open(script, **tables)
    result = solve(memory.run, given, run_baseline(memory.run))
    return result, list(dict.fromkeys(line.rpartition(" ")[0] for line in memory.asked))


def test_parts_and_their_steps_are_done_in_order_and_land_as_a_branch(project: MemoryProject) -> None:
    end, passes = solved(project, right)
    assert end.result.status is RunStatus.COMPLETE, end.result.reason
    assert passes == ["part_plan:p1", "impl:p1:s1", "part_plan:p2", "impl:p2:s1"]
    assert [entry.pass_id.partition(":")[2] for entry in end.result.passes] == [
        "part_plan:p1",
        "impl:p1:s1",
        "adjust:p1:after_s1",
        "part_plan:p2",
        "impl:p2:s1",
        "adjust:p2:after_s1",
    ]
    assert project.history.files[end.result_commit] == {"a.py": "a = 1\n", "b.py": "b = 1\n"}
    assert project.history.refs[end.result.branch] == end.result_commit


def test_a_part_waits_for_what_it_needs(project: MemoryProject) -> None:
    parts = (part("p1", "a.py", needs=("p2",)), part("p2", "b.py"))
    _, passes = solved(project, right, PlanGiven(meta_plan=MetaPlan(task_summary="x", parts=parts)))
    assert passes[0] == "part_plan:p2"


def test_what_needs_an_unfinished_part_is_not_begun(project: MemoryProject) -> None:
    parts = (part("p1", "a.py"), part("p2", "b.py", needs=("p1",)))

    def lazy(request: ChatRequest) -> str:
        return right(request) if request.identity.prompt == "part_plan" else "I cannot."

    given = PlanGiven(meta_plan=MetaPlan(task_summary="x", parts=parts))
    end, passes = solved(project, lazy, given, solve={"max_attempts": 1}, recovery={"rules": ()})
    assert end.result.status is RunStatus.NEEDS_HUMAN
    assert "part_plan:p2" not in passes


def test_what_needs_a_step_that_was_given_up_is_not_tried(project: MemoryProject) -> None:
    plan = part_plan(step("s1", "a.py"), step("s2", "b.py", needs=("s1",)))
    end, passes = solved(
        project,
        lambda _: "I cannot.",
        PlanGiven(single=plan),
        solve={"max_attempts": 1},
        recovery={"rules": ()},
    )
    assert set(passes) == {"impl:p1:s1"}
    assert end.result.steps_completed == 0
    assert end.result.reason.startswith("step p1/s1 cannot be done: ")


def test_a_reviewed_plan_is_followed_without_planning(project: MemoryProject) -> None:
    plan = part_plan(step("s2", "b.py", needs=("s1",)), step("s1", "a.py"))

    def by_step(request: ChatRequest) -> str:
        return setting("a.py" if request.identity.pass_id.endswith("s1") else "b.py")

    end, passes = solved(project, by_step, PlanGiven(single=plan))
    assert end.result.status is RunStatus.COMPLETE, end.result.reason
    assert passes == ["impl:p1:s1", "impl:p1:s2"], "dependencies first"


def test_the_reasons_of_a_users_plan_are_kept_in_mind_and_those_of_a_models_are_not(
    project: MemoryProject,
) -> None:
    prompts: list[str] = []

    def watched(request: ChatRequest) -> str:
        if request.identity.prompt == "implement":
            prompts.append(request.prompt)
        return right(request)

    own = part_plan(step("s1", "a.py")).model_copy(update={"rationale": "Leave b.py alone."})
    solved(project, watched, PlanGiven(single=own))
    assert "## Keep in mind\nLeave b.py alone.\n" in prompts[0]
    prompts.clear()
    solved(project, watched)
    assert prompts
    assert not any("## Keep in mind" in prompt for prompt in prompts)


def test_a_step_that_others_need_is_put_to_a_person(project: MemoryProject) -> None:
    plan = part_plan(step("s1", "a.py"), step("s2", "b.py", needs=("s1",)))
    end, _ = solved(project, lambda _: "I cannot.", PlanGiven(single=plan), solve={"max_attempts": 1})
    assert end.result.status is RunStatus.NEEDS_HUMAN
    assert end.result.reason.endswith("what does this step have to do differently? Other steps need it")


def test_a_part_whose_steps_failed_is_planned_again_from_what_failed(project: MemoryProject) -> None:
    plans = iter([steps_answer("b.py"), steps_answer("a.py")])

    def second_plan_is_right(request: ChatRequest) -> str:
        if request.identity.prompt == "part_plan":
            return next(plans)
        if request.identity.prompt == "goal_check":
            return "yes"
        return setting("a.py") if "s1-2" in request.identity.pass_id else "I cannot."

    one = PlanGiven(meta_plan=MetaPlan(task_summary="x", parts=(part("p1", "a.py", "b.py"),)))
    end, passes = solved(
        project,
        second_plan_is_right,
        one,
        solve={"max_attempts": 1},
        recovery={"rules": ("replan",)},
    )
    assert "part_plan:p1:replan_1" in passes
    assert [kind for kind, _ in project.events() if kind == "replan"] == ["replan"]
    assert end.result.steps_completed == 1
    assert project.history.files[end.result_commit]["a.py"] == "a = 1\n"


def test_a_server_that_fails_after_a_step_leaves_a_partial_result(project: MemoryProject) -> None:
    def then_fails(request: ChatRequest) -> str:
        if "p2" in request.identity.pass_id:
            raise ServerFailed("the server is gone", hint="start it")
        return right(request)

    end, _ = solved(project, then_fails)
    assert (end.result.status, end.result.reason) == (RunStatus.PARTIAL, "the server is gone")
    assert project.history.files[end.result_commit] == {"a.py": "a = 1\n", "b.py": "b = 0\n"}


def test_a_server_that_fails_before_any_step_ends_the_run(project: MemoryProject) -> None:
    def fails(_: ChatRequest) -> str:
        raise ServerFailed("the server is gone")

    with pytest.raises(ServerFailed):
        solved(project, fails)


@pytest.mark.parametrize("given", [PlanGiven(), BOTH], ids=["the task", "a part"])
def test_a_run_whose_budget_is_spent_plans_no_more(given: PlanGiven, project: MemoryProject) -> None:
    memory = project.open(right, orchestrator={"max_calls": 1}, solve={"route": "planned"})
    memory.meter.add(prompt_tokens=1, completion_tokens=1, latency_ms=1, window=1)
    end = solve(memory.run, given, run_baseline(memory.run))
    assert (end.result.status, end.result.reason) == (
        RunStatus.PARTIAL,
        "budget spent: 1 model call (max_calls = 1)",
    )
    assert memory.asked == []


def test_a_run_whose_budget_is_spent_begins_no_step(project: MemoryProject) -> None:
    memory = project.open(right, orchestrator={"max_calls": 1})
    memory.meter.add(prompt_tokens=1, completion_tokens=1, latency_ms=1, window=1)
    end = solve(memory.run, PlanGiven(single=part_plan(step("s1", "a.py"))), run_baseline(memory.run))
    assert end.result.status is RunStatus.PARTIAL
    assert end.result.reason == "budget spent: 1 model call (max_calls = 1)"
    assert memory.asked == []


def test_a_resumed_run_does_nothing_twice(project: MemoryProject) -> None:
    first, _ = solved(project, right)
    again = project.open(right, resumed=True)
    second = solve(again.run, BOTH, run_baseline(again.run))
    assert again.asked == []
    assert again.runner.commands_run == []
    assert (second.result.status, second.result_commit) == (RunStatus.COMPLETE, first.result_commit)


def renaming(lost_with: str = "never") -> Callable[[Mapping[str, str]], dict[str, Outcome]]:
    """Tests with parameters that are other ones each time; a file with these words loses one of them."""
    numbers = itertools.count()

    def tests(files: Mapping[str, str]) -> dict[str, Outcome]:
        red: Outcome = "passed" if files["a.py"] == "a = 1\n" else "failed"
        fewer = lost_with in files["a.py"]
        kept: dict[str, Outcome] = {f"t.py::kept[{next(numbers)}]": "passed" for _ in range(2 - fewer)}
        return {**kept, "t.py::kept[b]": "passed", f"t.py::goal[{next(numbers)}]": red}

    return tests


def test_a_name_that_the_unchanged_tree_does_not_repeat_cannot_be_missed(tmp_path: Path) -> None:
    with memory_project(tmp_path, FILES, renaming()) as project:
        end, passes = solved(project, right, PlanGiven(single=part_plan(step("s1", "a.py"))))
        said = [detail for kind, detail in project.events() if kind == "note"]
    assert (end.result.status, passes) == (RunStatus.COMPLETE, ["impl:p1:s1"])
    assert [(one.name, one.green) for one in end.result.evidence] == [("t.py::goal[~1]", True)]
    assert "their names change from run to run, so they are only counted: t.py::goal, t.py::kept" in said


def test_a_test_that_an_edit_takes_away_is_missed_whatever_its_name(tmp_path: Path) -> None:
    with memory_project(tmp_path, FILES, renaming("= 1")) as project:
        end, _ = solved(
            project, right, PlanGiven(single=part_plan(step("s1", "a.py"))), solve={"max_attempts": 1}
        )
    assert end.result.status is RunStatus.FAILED
    assert "missing: t.py::kept[~2]" in end.result.reason
