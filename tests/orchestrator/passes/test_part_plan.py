import pytest
from testing.runs.memory_answers import parts_answer, steps_answer
from testing.runs.memory_run import MemoryProject, part, part_plan, step

from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.goals import GivenEvidence
from clean_room_agent.artifacts.plans import MetaPlan
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.llm.transport import ChatRequest
from clean_room_agent.orchestrator.passes.meta_plan import plan_parts
from clean_room_agent.orchestrator.passes.part_plan import FailedPlan, plan_part
from clean_room_agent.orchestrator.task import PlanGiven

PART = part("p1", "a.py", "b.py")
META = MetaPlan(task_summary="x", parts=(PART,))


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


def test_steps_in_other_files_than_the_user_names_go_back(project: MemoryProject) -> None:
    given = PlanGiven(evidence=GivenEvidence(files=("b.py",)))
    answers = iter([steps_answer("a.py"), steps_answer("b.py")])
    memory = project.open(lambda _: next(answers), given=given)
    plan = plan_part(memory.run, META, PART, Evidence())
    assert plan is not None
    assert [target.path for step in plan.steps for target in step.target_files] == ["b.py"]
    assert "a.py is none of the files that --file names: b.py" in memory.transport.requests[1].prompt


def test_where_plans_are_not_asked_for_the_part_is_one_step(project: MemoryProject) -> None:
    memory = project.open(lambda _: pytest.fail("a plan was asked for"), orchestrator={"planning": "none"})
    plan = plan_part(memory.run, META, PART, Evidence())
    assert plan is not None
    assert len(plan.steps) == 1


def test_without_a_plan_the_fallback_stays_within_the_files_that_the_user_names(
    project: MemoryProject,
) -> None:
    given = PlanGiven(evidence=GivenEvidence(files=("b.py",)))
    memory = project.open(lambda _: "No plan.", given=given)
    plan = plan_part(memory.run, META, PART, Evidence())
    assert plan is not None
    assert [target.path for step in plan.steps for target in step.target_files] == ["b.py"]
