import json

from testing.runs.memory_run import MemoryProject, MemoryRun, part, step

from clean_room_agent.artifacts.plans import PlanStep
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.plan_drafts import StepOutcome
from clean_room_agent.llm.transport import ChatRequest
from clean_room_agent.orchestrator.passes.adjust import adjust_part

PART = part("p1", "a.py", "b.py")
DONE = StepOutcome(step=step("s1", "a.py"), succeeded=True, detail="", failures=())
LEFT = (step("s2", "b.py"),)


def revision(*steps: PlanStep, changes: tuple[str, ...] = ()) -> str:
    listed = [
        {
            "description": one.description,
            "files": [{"path": target.path, "role": target.role} for target in one.target_files],
            "id": one.id,
            "needs": list(one.depends_on),
            "symbols": [],
        }
        for one in steps
    ]
    return json.dumps({"analysis": "x", "changes": list(changes), "steps": listed})


def detail(memory: MemoryRun) -> str:
    return memory.run.recorder.passes[-1].detail


def test_the_remaining_steps_may_stay_as_they_are(project: MemoryProject) -> None:
    memory = project.open(lambda _: revision(*LEFT))
    assert adjust_part(memory.run, PART, DONE, (), LEFT) == LEFT
    assert detail(memory) == "1 step remains, unchanged"
    assert memory.index.asked[0].files == ("b.py",)


def test_the_remaining_steps_may_be_revised(project: MemoryProject) -> None:
    other = step("s2", "b.py", words="Set b with care.")
    memory = project.open(lambda _: revision(other, changes=("s2: with care",)))
    (revised,) = adjust_part(memory.run, PART, DONE, (), LEFT)
    assert revised.description == "Set b with care."
    assert detail(memory) == "s2: with care"


def test_where_nothing_remains_nobody_is_asked(project: MemoryProject) -> None:
    memory = project.open(lambda _: "never asked")
    assert adjust_part(memory.run, PART, DONE, (), ()) == ()
    assert memory.asked == []
    assert detail(memory) == "nothing remains"


def test_a_revision_that_cannot_be_read_leaves_the_plan(project: MemoryProject) -> None:
    memory = project.open(lambda _: "No.")
    assert adjust_part(memory.run, PART, DONE, (), LEFT) == LEFT
    assert detail(memory).startswith("kept as it was: ")
    assert not memory.run.recorder.passes[-1].success


def test_a_revision_that_does_not_fit_leaves_the_plan_for_good(project: MemoryProject) -> None:
    def too_long(_: ChatRequest) -> str:
        raise WindowExceeded("the prompt does not fit")

    memory = project.open(too_long)
    assert adjust_part(memory.run, PART, DONE, (), LEFT) == LEFT
    assert detail(memory) == "kept as it was: the prompt does not fit"
    assert ("note", "the prompt does not fit; the remaining steps stay as they were") in project.events()
    again = project.open(lambda _: revision(), resumed=True)
    assert adjust_part(again.run, PART, DONE, (), LEFT) == LEFT
    assert again.asked == []


def test_with_no_rounds_of_adjustment_there_is_no_pass(project: MemoryProject) -> None:
    memory = project.open(lambda _: "never asked", orchestrator={"max_adjustment_rounds": 0})
    assert adjust_part(memory.run, PART, DONE, (), LEFT) == LEFT
    assert memory.run.recorder.passes == []
