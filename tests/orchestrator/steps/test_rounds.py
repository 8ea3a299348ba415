from collections.abc import Callable, Iterator

from msgspec.structs import replace
from testing.runs.memory_answers import replacing
from testing.runs.memory_run import TASK_ID, MemoryProject, MemoryRun, part, step

from clean_room_agent.artifacts.context import ContextPackage, RefinementRequest
from clean_room_agent.artifacts.outcomes import Action, AttemptOutcome
from clean_room_agent.llm.transport import ChatRequest
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.steps.attempt import StepJob
from clean_room_agent.orchestrator.steps.rounds import (
    Round,
    StepHistory,
    context_for,
    draw_round,
    has_attempt,
)

FIRST = Action(kind="retry", rule="first attempt")
JOB = StepJob(part=part("p1", "a.py"), step=step("s1", "a.py", words="Set a."), constraints="")
OWN = f"{TASK_ID}:impl:p1:s1"
RETRY = f"{OWN}:retry_1"
WRONG = replacing("a.py", "a = 0", "a = 7")
OTHER = replacing("a.py", "a = 0", "a = 8")
RIGHT = replacing("a.py", "a = 0", "a = 1")


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


def in_turn(*answers: str) -> Callable[[ChatRequest], str]:
    left: Iterator[str] = iter(answers)
    return lambda _: next(left)


def drawn(
    project: MemoryProject, script: Callable[[ChatRequest], str], samples: int, *, resumed: bool = False
) -> tuple[MemoryRun, StepHistory, Round]:
    memory = project.open(script, solve={"samples": samples}, resumed=resumed)
    run_baseline(memory.run)
    history = StepHistory()
    return memory, history, draw_round(memory.run, JOB, history, FIRST)


def test_the_best_of_the_candidates_is_chosen_and_the_record_says_why(project: MemoryProject) -> None:
    _, history, one = drawn(project, in_turn(WRONG, RIGHT, OTHER), 3)
    assert (one.size, one.best) == (3, history.attempts[1])
    reasons = [detail for kind, detail in project.events() if kind == "not_chosen"]
    assert reasons == ["attempt 2 has 1 of 2 goal tests green, this one 0"] * 2


def test_a_round_draws_from_one_prompt_the_first_cold_and_the_others_warm(project: MemoryProject) -> None:
    whole = RIGHT + replacing("b.py", "b = 0", "b = 1")
    own = step("s1", "a.py", "b.py").model_copy(update={"any_of_files": True})
    memory = project.open(in_turn(WRONG, whole), solve={"samples": 5})
    run_baseline(memory.run)
    one = draw_round(memory.run, StepJob(part=JOB.part, step=own, constraints=""), StepHistory(), FIRST)
    assert one.size == 2, "the second turned all goal tests green"
    first, second = memory.transport.requests
    assert first.prompt == second.prompt
    sampled = [(request.sampling.temperature, request.sampling.seed) for request in (first, second)]
    assert sampled == [(0.0, 1), (0.7, 2)]


def test_a_tree_that_was_tested_is_not_tested_again(project: MemoryProject) -> None:
    memory, history, _ = drawn(project, in_turn(WRONG, WRONG, OTHER), 3)
    assert len(memory.runner.commands_run) == 1 + 2, "the baseline, and each tree once"
    first, second, _ = history.attempts
    assert second.judgment is not None
    assert first.judgment is not None
    assert second.judgment.tests == first.judgment.tests
    assert second.change.commit == first.change.commit
    assert ("not_chosen", "the same change as attempt 1") in project.events()


def test_an_answer_that_was_cut_off_ends_the_round(project: MemoryProject) -> None:
    _, history, one = drawn(project, lambda _: '<edit file="a.py">\n<search>\na', 3)
    assert one.size == 1
    assert history.attempts[0].outcome is AttemptOutcome.TRUNCATED


def test_an_interrupted_round_goes_on_with_the_candidates_it_has(project: MemoryProject) -> None:
    def breaks_off(answers: Iterator[str]) -> Callable[[ChatRequest], str]:
        def answer(_: ChatRequest) -> str:
            for text in answers:
                return text
            raise KeyboardInterrupt

        return answer

    try:
        drawn(project, breaks_off(iter([WRONG])), 2)
    except KeyboardInterrupt:
        memory, history, one = drawn(project, in_turn(RIGHT), 2, resumed=True)
    assert memory.asked == ["impl:p1:s1:retry_1 implement"]
    assert (one.size, one.best) == (2, history.attempts[1])
    assert not one.known


def test_a_step_was_tried_once_its_first_attempt_is_kept(project: MemoryProject) -> None:
    memory = project.open(in_turn(RIGHT))
    run_baseline(memory.run)
    assert not has_attempt(memory.run, JOB)
    draw_round(memory.run, JOB, StepHistory(), FIRST)
    assert has_attempt(memory.run, JOB)
