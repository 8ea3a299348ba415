import json

import pytest
from testing.runs.memory_answers import parts_answer
from testing.runs.memory_run import TASK, MemoryProject, part, pytest_run

from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.goals import GivenEvidence
from clean_room_agent.artifacts.plans import MetaPlan
from clean_room_agent.orchestrator.events import PassFinished
from clean_room_agent.orchestrator.passes.meta_plan import plan_parts
from clean_room_agent.orchestrator.task import PlanGiven
from clean_room_agent.orchestrator.test_runs.results import evidence_of

PART = part("p1", "a.py", "b.py")
META = MetaPlan(task_summary="x", parts=(PART,))


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


def test_where_plans_are_not_asked_for_the_task_is_one_part(project: MemoryProject) -> None:
    settings = {"planning": "none", "plan_fallback": False}
    memory = project.open(lambda _: pytest.fail("a plan was asked for"), orchestrator=settings)
    plan = plan_parts(memory.run, Evidence())
    assert plan is not None
    assert [entry.affected_files for entry in plan.parts] == [("a.py", "b.py")]
    (closed,) = memory.run.recorder.passes
    assert closed.detail.startswith("no model is asked for a plan (planning = none); one part in its place")


def test_without_the_fallback_the_reason_is_kept(project: MemoryProject) -> None:
    memory = project.open(lambda _: "No plan.", orchestrator={"plan_fallback": False})
    assert plan_parts(memory.run, Evidence()) is None
    assert memory.run.progress.stop.no_plan == "no valid plan: the answer holds no JSON object"


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
