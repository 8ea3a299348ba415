from typing import Any

from testing.runs.memory_answers import replacing
from testing.runs.memory_run import MemoryProject, MemoryRun, part, step

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.outcomes import Action, AttemptOutcome
from clean_room_agent.llm.transport import RawAnswer
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.steps.attempt import (
    VARIED_TEMPERATURE,
    Attempt,
    StepJob,
    ask,
    place,
)
from clean_room_agent.orchestrator.steps.rounds import context_for

FIRST = Action(kind="retry", rule="first attempt")
JOB = StepJob(part=part("p1", "a.py"), step=step("s1", "a.py"), constraints="Mind the rest.")
RIGHT = replacing("a.py", "a = 0", "a = 1")


def opened(
    project: MemoryProject, answer: str | RawAnswer, **tables: Any
) -> tuple[MemoryRun, ContextPackage]:
    memory = project.open(lambda _: answer, **tables)
    run_baseline(memory.run)
    return memory, context_for(memory.run, JOB, None, pass_id(memory), FIRST, [])


def pass_id(memory: MemoryRun) -> str:
    return f"{memory.run.task.task_id}:impl:p1:s1"


def placed(
    project: MemoryProject, answer: str | RawAnswer, job: StepJob = JOB, earlier: tuple[Attempt, ...] = ()
) -> tuple[MemoryRun, Attempt]:
    memory, package = opened(project, answer)
    own = pass_id(memory)
    given = ask(memory.run, job, package, FIRST, pass_id=own, number=1)
    return memory, place(memory.run, job, package, given, pass_id=own, earlier=earlier)


def test_the_prompt_shows_the_task_the_step_its_constraints_and_the_code(project: MemoryProject) -> None:
    memory, package = opened(project, RIGHT)
    ask(memory.run, JOB, package, FIRST, pass_id=pass_id(memory), number=1)
    prompt = memory.transport.requests[0].prompt
    for text in (memory.run.task.description, JOB.step.description, "Mind the rest.", "a = 0"):
        assert text in prompt


def test_edits_become_a_commit_that_waits_for_its_tests(project: MemoryProject) -> None:
    memory, attempt = placed(project, RIGHT)
    assert attempt.awaits_tests
    assert project.history.files[attempt.change.commit]["a.py"] == "a = 1\n"
    assert "+a = 1" in attempt.change.diff
    assert memory.run.commits.head == memory.run.commits.base, "nothing is accepted yet"
    assert memory.runner.commands_run == ["pytest"], "the baseline's"


def test_an_edit_of_a_file_that_was_not_shown_asks_for_it(project: MemoryProject) -> None:
    job = StepJob(part=JOB.part, step=step("s1", "a.py", "b.py"), constraints="")
    _, attempt = placed(project, replacing("b.py", "zzz", "b = 1"), job)
    assert attempt.outcome is AttemptOutcome.INSUFFICIENT_CONTEXT
    assert attempt.missing is not None
    assert attempt.missing.missing_files == ("b.py",)


def test_a_target_that_is_left_alone_is_refused_once(project: MemoryProject) -> None:
    job = StepJob(part=JOB.part, step=step("s1", "a.py", "b.py"), constraints="")
    _, first = placed(project, RIGHT, job)
    assert first.feedback == "nothing was applied, because the step also has to: modify b.py"
    _, second = placed(project, RIGHT, job, (first,))
    assert second.awaits_tests
    assert second.change.untouched == ("modify b.py",)
    assert ("target_untouched", "modify b.py") in project.events()


def test_another_draw_is_warm_and_has_a_seed_of_its_own(project: MemoryProject) -> None:
    memory, package = opened(project, RIGHT)
    for again in (False, True):
        ask(memory.run, JOB, package, FIRST, pass_id=pass_id(memory), number=3, again=again)
    cold, warm = (request.sampling for request in memory.transport.requests)
    assert cold.temperature < VARIED_TEMPERATURE
    assert (warm.temperature, warm.seed) == (VARIED_TEMPERATURE, 3)
