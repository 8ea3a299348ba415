from msgspec.structs import replace
from testing.runs.memory_run import TASK_ID, MemoryProject, MemoryRun, part, step

from clean_room_agent.artifacts.context import ContextPackage, RefinementRequest
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.recovery_facts import Action
from clean_room_agent.orchestrator.steps.attempt import StepJob
from clean_room_agent.orchestrator.steps.step_context import context_for

FIRST = Action(kind="retry", rule="first attempt")
JOB = StepJob(part=part("p1", "a.py"), step=step("s1", "a.py", words="Set a."), constraints="")
OWN = f"{TASK_ID}:impl:p1:s1"
RETRY = f"{OWN}:retry_1"


def first(project: MemoryProject, **tables: int) -> tuple[MemoryRun, ContextPackage]:
    memory = project.open(lambda _: "", **tables)  # type: ignore[arg-type]
    run_baseline(memory.run)
    return memory, context_for(memory.run, JOB, None, OWN, FIRST, [])


def test_a_step_asks_for_the_files_and_words_of_its_plan(project: MemoryProject) -> None:
    memory, package = first(project)
    (request,) = memory.index.asked
    assert (request.pass_id, request.mode, request.role) == (OWN, "implement", "coding")
    assert (request.files, request.focus) == (("a.py",), "Set a.")
    assert request.evidence.failing_tests == ()
    assert [item.path for item in package.items] == ["a.py"]


def test_a_retry_is_shown_what_the_first_attempt_was(project: MemoryProject) -> None:
    memory, package = first(project)
    assert context_for(memory.run, JOB, package, RETRY, FIRST, []) is package
    assert len(memory.index.asked) == 1


def test_a_refinement_adds_what_was_missing_and_the_record_says_what_came(project: MemoryProject) -> None:
    memory, package = first(project)
    wanted = RefinementRequest(reason="r", missing_files=("b.py",))
    action = Action(kind="refine", rule="refine")
    refined = context_for(memory.run, JOB, package, RETRY, action, [wanted])
    assert [item.path for item in refined.items] == ["a.py", "b.py"]


def test_after_an_answer_that_was_cut_off_a_full_context_is_made_smaller(project: MemoryProject) -> None:
    memory, package = first(project)
    action = Action(kind="retry", rule="widen", more_room=True)
    assert context_for(memory.run, JOB, package, RETRY, action, []) is package, "there is space enough"
    window = memory.run.models.window("coding")
    full = replace(package, budget=replace(package.budget, used_tokens=window.context - window.reserved))
    context_for(memory.run, JOB, full, RETRY, action, [])
    assert memory.index.asked[-1].extra_reserved > memory.index.asked[0].extra_reserved
