import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.runs.memory_answers import parts_answer, steps_answer
from testing.runs.memory_run import TASK, MemoryProject, memory_project, part, part_plan, pytest_run, step

from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.goals import GivenEvidence
from clean_room_agent.artifacts.plans import MetaPlan
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.llm.transport import ChatRequest
from clean_room_agent.orchestrator.events import PassFinished
from clean_room_agent.orchestrator.planning import (
    FailedPlan,
    plan_part,
    plan_parts,
)
from clean_room_agent.orchestrator.task import PlanGiven
from clean_room_agent.orchestrator.test_runs.results import evidence_of

FILES = {"a.py": "a = 0\n", "b.py": "b = 0\n", "tests/test_a.py": "import a\n"}
PART = part("p1", "a.py", "b.py")
META = MetaPlan(task_summary="x", parts=(PART,))


@pytest.fixture
def project(tmp_path: Path) -> Iterator[MemoryProject]:
    with memory_project(tmp_path, FILES, lambda _: {"t.py::a": "failed"}) as made:
        yield made


def test_a_task_is_divided_into_parts(project: MemoryProject) -> None:
    memory = project.open(lambda _: parts_answer(("one", ["a.py"]), ("two", ["b.py"])))
    plan = plan_parts(memory.run, Evidence())
    assert plan is not None
    assert [(entry.id, entry.affected_files) for entry in plan.parts] == [
        ("one", ("a.py",)),
        ("two", ("b.py",)),
    ]
    (closed,) = memory.run.recorder.passes
    assert (closed.success, closed.detail) == (True, "2 parts: one, two")
    assert memory.asked == ["meta_plan meta_plan"]


def test_the_planner_sees_the_task_what_fails_and_the_context(project: MemoryProject) -> None:
    memory = project.open(lambda _: parts_answer(("one", ["a.py"])))
    plan_parts(memory.run, evidence_of(pytest_run({"t.py::a": "failed"})))
    (request,) = memory.index.asked
    assert (request.task, request.mode, request.role) == (TASK, "plan", "reasoning")
    prompt = memory.transport.requests[0].prompt
    assert TASK in prompt
    assert "a = 0" in prompt


def test_a_plan_with_a_fault_goes_back_once_with_it(project: MemoryProject) -> None:
    circle = json.loads(parts_answer(("one", ["a.py"]), ("two", ["b.py"])))
    circle["parts"][0]["needs"], circle["parts"][1]["needs"] = ["two"], ["one"]
    answers = iter([json.dumps(circle), parts_answer(("one", ["a.py"]))])
    memory = project.open(lambda _: next(answers))
    plan = plan_parts(memory.run, Evidence())
    assert plan is not None
    assert [entry.id for entry in plan.parts] == ["one"]
    assert "these parts need one another: one, two" in memory.transport.requests[1].prompt
    assert project.events() == [("plan_note", "refused: these parts need one another: one, two")]


def test_where_no_plan_comes_the_task_is_one_part(project: MemoryProject) -> None:
    memory = project.open(lambda _: "No plan.")
    plan = plan_parts(memory.run, Evidence())
    assert plan is not None
    assert [entry.affected_files for entry in plan.parts] == [("a.py", "b.py")], "no tests: they judge"
    (closed,) = memory.run.recorder.passes
    assert (closed.success, closed.fallback) == (False, True)
    assert closed.detail.endswith("one part in its place: a.py, b.py")
    assert ("plan_fault", "the answer holds no JSON object") in project.events()


def test_without_the_fallback_the_reason_is_kept(project: MemoryProject) -> None:
    memory = project.open(lambda _: "No plan.", orchestrator={"plan_fallback": False})
    assert plan_parts(memory.run, Evidence()) is None
    assert memory.run.progress.stop.no_plan == "no valid plan: the answer holds no JSON object"


def test_a_part_is_divided_into_steps(project: MemoryProject) -> None:
    memory = project.open(lambda _: steps_answer("a.py", "b.py", needs={"b.py": ["s1"]}))
    plan = plan_part(memory.run, META, PART, Evidence())
    assert plan is not None
    assert [(entry.id, entry.depends_on) for entry in plan.steps] == [("s1", ()), ("s2", ("s1",))]
    assert memory.index.asked[0].files == ("a.py", "b.py")


def test_the_only_part_is_planned_from_the_context_of_the_whole_task(project: MemoryProject) -> None:
    def script(request: ChatRequest) -> str:
        planning_parts = request.identity.prompt == "meta_plan"
        return parts_answer(("p1", ["a.py"])) if planning_parts else steps_answer("a.py")

    memory = project.open(script)
    meta = plan_parts(memory.run, Evidence())
    assert meta is not None
    assert plan_part(memory.run, meta, meta.parts[0], Evidence()) is not None
    assert len(memory.index.asked) == 1
    assert ("context_of", "meta_plan") in project.events()


def test_a_plan_after_a_failed_one_has_names_of_its_own(project: MemoryProject) -> None:
    def script(request: ChatRequest) -> str:
        return "yes" if request.identity.prompt == "goal_check" else steps_answer("a.py")

    memory = project.open(script)
    failed = FailedPlan(
        plan=part_plan(step("s1", "a.py")),
        faults=("step s1 failed: 1 fails newly",),
        number=1,
        cut_off=False,
    )
    plan = plan_part(memory.run, META, PART, Evidence(), failed)
    assert plan is not None
    assert [entry.id for entry in plan.steps] == ["s1-2"]
    assert memory.run.recorder.passes[0].pass_id.endswith("part_plan:p1:replan_1")
    assert "step s1 failed: 1 fails newly" in memory.transport.requests[0].prompt


def test_where_no_steps_come_the_part_is_one_step_that_may_leave_files_alone(project: MemoryProject) -> None:
    memory = project.open(lambda _: "No plan.")
    plan = plan_part(memory.run, META, PART, Evidence())
    assert plan is not None
    (only,) = plan.steps
    assert only.any_of_files
    assert [target.path for target in only.target_files] == ["a.py", "b.py"]


def test_a_part_whose_prompt_does_not_fit_ends_alone(project: MemoryProject) -> None:
    def too_long(_: ChatRequest) -> str:
        raise WindowExceeded("the prompt does not fit", hint="shorten it")

    memory = project.open(too_long)
    assert plan_part(memory.run, META, PART, Evidence()) is None
    assert memory.run.progress.stop.no_plan == "part p1: the prompt does not fit"
    with pytest.raises(WindowExceeded):
        plan_parts(memory.run, Evidence())


def test_a_plan_is_made_once_however_often_its_run_is_resumed(project: MemoryProject) -> None:
    plan = plan_parts(project.open(lambda _: parts_answer(("one", ["a.py"]))).run, Evidence())
    again = project.open(lambda _: "never asked", resumed=True)
    assert plan_parts(again.run, Evidence()) == plan
    assert again.asked == []
    finished = [event for event in project.observer.events if isinstance(event, PassFinished)]
    assert len(finished) == 1


def test_where_the_user_names_files_they_are_shown_and_no_others_are_planned(project: MemoryProject) -> None:
    given = PlanGiven(evidence=GivenEvidence(files=("b.py",)))
    answer = parts_answer(("one", ["a.py", "b.py", "tests/test_a.py"]), ("two", ["a.py"]))
    memory = project.open(lambda _: answer, given=given)
    plan = plan_parts(memory.run, Evidence())
    assert plan is not None
    assert [one.affected_files for one in plan.parts] == [("b.py", "tests/test_a.py"), ("b.py",)]
    assert memory.index.asked[0].files == ("b.py",)


def test_steps_in_other_files_than_the_user_names_go_back(project: MemoryProject) -> None:
    given = PlanGiven(evidence=GivenEvidence(files=("b.py",)))
    answers = iter([steps_answer("a.py"), steps_answer("b.py")])
    memory = project.open(lambda _: next(answers), given=given)
    plan = plan_part(memory.run, META, PART, Evidence())
    assert plan is not None
    assert [target.path for step in plan.steps for target in step.target_files] == ["b.py"]
    assert "a.py is none of the files that --file names: b.py" in memory.transport.requests[1].prompt


def test_without_a_plan_the_fallback_stays_within_the_files_that_the_user_names(
    project: MemoryProject,
) -> None:
    given = PlanGiven(evidence=GivenEvidence(files=("b.py",)))
    memory = project.open(lambda _: "No plan.", given=given)
    plan = plan_part(memory.run, META, PART, Evidence())
    assert plan is not None
    assert [target.path for step in plan.steps for target in step.target_files] == ["b.py"]
