from collections.abc import Callable
from typing import Any

from testing.runs.memory_run import TASK_ID, MemoryProject, MemoryRun, part, step

from clean_room_agent.artifacts.outcomes import Action
from clean_room_agent.artifacts.plans import TargetFile
from clean_room_agent.llm.transport import ChatRequest
from clean_room_agent.orchestrator.commits import Scaffold
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.steps.attempt import Attempt, StepJob
from clean_room_agent.orchestrator.steps.rounds import context_for
from clean_room_agent.orchestrator.steps.scaffold_attempt import scaffold_for

FIRST = Action(kind="retry", rule="first attempt")
OWN = f"{TASK_ID}:impl:p1:s1"
CREATES = step("s1", "new.py").model_copy(
    update={"target_files": (TargetFile(path="new.py", role="create"),)}
)
JOB = StepJob(part=part("p1", "new.py"), step=CREATES, constraints="")
DECLARED = '''<create file="new.py">
"""New things."""


def parse(text):
    """The text in parts."""
    raise NotImplementedError
</create>
'''


def made(
    project: MemoryProject,
    script: Callable[[ChatRequest], str],
    *,
    job: StepJob = JOB,
    scaffold: str = "always",
    earlier: tuple[Attempt, ...] = (),
    resumed: bool = False,
) -> tuple[MemoryRun, Scaffold | None]:
    tables: dict[str, Any] = {"solve": {"scaffold": scaffold}}
    memory = project.open(script, resumed=resumed, **tables)
    run_baseline(memory.run)
    package = context_for(memory.run, job, None, OWN, FIRST, [])
    found = scaffold_for(memory.run, job, package, FIRST, pass_id=OWN, earlier=earlier, known=False)
    return memory, found


def test_a_step_that_creates_a_file_begins_with_its_declarations(project: MemoryProject) -> None:
    memory, found = made(project, lambda _: DECLARED)
    assert found is not None
    assert found.stands, found.described()
    assert (found.paths, [stub.name for stub in found.stubs]) == (("new.py",), ["new.py::parse"])
    assert "raise NotImplementedError" in project.history.files[found.commit]["new.py"]
    assert project.history.refs["scaffolds/p1/s1"] == found.commit
    assert project.events() == [
        ("scaffold", "it creates new.py; it parses and imports; stubs: new.py::parse")
    ]
    assert memory.asked == ["impl:p1:s1 scaffold"]


def test_a_step_that_adds_little_has_none(project: MemoryProject) -> None:
    job = StepJob(part=part("p1", "a.py"), step=step("s1", "a.py"), constraints="")
    memory, found = made(project, lambda _: DECLARED, job=job)
    assert (found, memory.asked) == (None, [])


def test_what_does_not_parse_is_dropped(project: MemoryProject) -> None:
    broken = DECLARED.replace("def parse(text):", "def parse(text")
    memory, found = made(project, lambda _: broken)
    assert found is not None
    assert not found.stands
    assert len(memory.asked) == 1
    assert project.events()[-1][0] == "scaffold_dropped"


def test_a_resumed_run_has_the_scaffold_that_it_had(project: MemoryProject) -> None:
    _, first = made(project, lambda _: DECLARED)
    again, found = made(project, lambda _: "never asked", resumed=True)
    assert (found, again.asked) == (first, [])


def test_a_scaffold_whose_commit_git_lost_is_made_again(project: MemoryProject) -> None:
    _, first = made(project, lambda _: DECLARED)
    assert first is not None
    project.history.files.pop(first.commit)
    again, found = made(project, lambda _: DECLARED, resumed=True)
    assert found == first
    assert again.asked == ["impl:p1:s1 scaffold"]
