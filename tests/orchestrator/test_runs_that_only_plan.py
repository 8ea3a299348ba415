from testing.runs.memory_answers import parts_answer, steps_answer
from testing.runs.memory_run import TASK, MemoryProject

from clean_room_agent.artifacts.goals import GivenEvidence
from clean_room_agent.llm.transport import ChatRequest
from clean_room_agent.orchestrator.solve import make_plan
from clean_room_agent.orchestrator.task import PlanGiven


def planner(request: ChatRequest) -> str:
    if request.identity.prompt == "meta_plan":
        return parts_answer(("one", ["a.py"]), ("two", ["b.py"]))
    return steps_answer("b.py" if request.identity.pass_id.endswith("two") else "a.py")


def test_a_plan_has_every_part_and_its_steps_and_no_test_was_run(project: MemoryProject) -> None:
    memory = project.open(planner)
    plan, _ = make_plan(memory.run, "thinker:4b")
    assert plan is not None
    assert (plan.task, plan.model) == (TASK, "thinker:4b")
    assert [entry.path for entry in plan.affected_files] == ["a.py", "b.py"]
    assert memory.asked == ["meta_plan meta_plan", "part_plan:one part_plan", "part_plan:two part_plan"]
    assert memory.runner.commands_run == []
    assert memory.run.commits.head == memory.run.commits.base


def test_a_plan_that_the_model_did_not_make_says_so(project: MemoryProject) -> None:
    plan, _ = make_plan(project.open(lambda _: "No plan.").run, "thinker:4b")
    assert plan is not None
    assert plan.rationale.splitlines() == [
        f"Not planned by the model: {name}: no valid plan: the answer holds no JSON object; "
        f"one {what} in its place: a.py, b.py."
        for name, what in (("meta_plan", "part"), ("part_plan:whole", "step"))
    ]


def test_where_no_plan_comes_the_reason_is_told(project: MemoryProject) -> None:
    memory = project.open(lambda _: "No plan.", orchestrator={"plan_fallback": False})
    assert make_plan(memory.run, "thinker:4b") == (None, "no valid plan: the answer holds no JSON object")


def test_a_plan_carries_how_the_task_is_judged(project: MemoryProject) -> None:
    evidence = GivenEvidence(checks=("assert a",), tests=("t.py::a",), files=("a.py", "b.py"))
    plan, _ = make_plan(project.open(planner, given=PlanGiven(evidence=evidence)).run, "thinker:4b")
    assert plan is not None
    told = plan.evidence
    assert (told.checks, told.tests, told.files) == (evidence.checks, evidence.tests, evidence.files)
