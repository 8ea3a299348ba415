"""What a run does about a step that does not work, beyond trying it again, in whole runs in memory; and that such runs go on where
they were interrupted, and replay.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, field
from testing.runs.memory_till import MemoryTill, MemoryTold, dying, memory_till
from testing.runs.solving import MENDED_MONEY, TASK, Script, edit
from testing.runs.spoiled_answers import SPLIT, TOTAL, WRONG, cut
from testing.servers.ollama_script import Answer, Answerer, ChatCall

from clean_room_agent.artifacts.names import relative_pass
from clean_room_agent.execute.diagnose import DOCTOR
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import PART_PLAN

OTHER = edit(SPLIT, "    return [people] * cents")
RAISES = edit(SPLIT, "    raise ValueError(cents)")
TWO_FILES = {"till/money.py": MENDED_MONEY, "till/receipt.py": TOTAL}
TWO_FILES_TASK = f"{TASK}; till/receipt.py says sum, not total"
STRONGER = {"models": {"escalation": {"coding": ["coder:14b"], "reasoning": ["thinker:70b"]}}}
ONCE = {"max_attempts": 1, "max_refinement_loops": 0}


def advice(decision: str, hint: str = "") -> str:
    """What the doctor answers."""
    told = {"analysis": "a", "category": "logic", "confidence": 90, "decision": decision, "hint": hint}
    return json.dumps(told)


HINTED = advice("retry_with_fix", "Use divmod.")


@pytest.fixture
def two_files(tmp_path: Path) -> Iterator[MemoryTill]:
    """The till, whose task is about a second file, too."""
    with memory_till(tmp_path, changed=TWO_FILES, task=TWO_FILES_TASK) as made:
        yield made


def models_asked(told: MemoryTold, call_type: str) -> list[str]:
    return [json.loads(call.request.request_body)["model"] for call in told.recorded.calls_of(call_type)]


def test_two_failures_alike_have_the_part_planned_again_with_attempts_left(till: MemoryTill) -> None:
    told = till.solve_scripted({IMPLEMENT.title: [WRONG] * 3}, solve={"max_attempts": 5})
    assert told.ending == ("complete", "")
    assert told.recorded.actions == ["refine", "change_strategy", "replan"]
    assert json.loads(told.recorded.recoveries[-1].state)["replans_left"] == 1
    assert told.recorded.calls_of("implement")[-1].site.pass_id.endswith(":impl:p1:s1-2")
    shown = till.shown("p1/s1/3")
    assert "then replan: an approach flaw: two logic failures are 100% alike" in shown, shown


def test_a_step_cut_off_twice_is_cut_down_and_the_rest_planned_again(two_files: MemoryTill) -> None:
    told = two_files.solve_scripted({IMPLEMENT.title: [cut, cut]})
    assert told.ending == ("complete", "")
    assert told.recorded.actions == ["retry", "reduce_scope"]
    steps = [row.task_id.partition(":impl:")[2] for row in told.recorded.passes if ":impl:" in row.task_id]
    assert steps == ["p1:s1", "p1:s1:retry_1", "p1:s1-a", "p1:s1-2"]
    again = told.recorded.calls_of("part_plan")[-1].request.prompt
    assert "left for later, after s1-a" in again
    assert "sum: " in told.files["till/receipt.py"]


def test_a_stronger_model_is_asked_once_the_coder_has_no_attempt_left(till: MemoryTill) -> None:
    told = till.solve_scripted(
        {IMPLEMENT.title: ["I cannot."] * 4},
        models={"escalation": {"coding": ["coder:14b"]}},
        solve={"max_attempts": 2},
    )
    assert told.ending == ("complete", "")
    assert told.recorded.actions == ["retry", "escalate"]
    assert models_asked(told, "implement") == ["coder:3b"] * 4 + ["coder:14b"]
    assert told.recorded.passes[-2].execute_model == "coder:14b"


def test_rows_that_are_switched_off_leave_the_plain_loop(till: MemoryTill) -> None:
    told = till.solve_scripted({IMPLEMENT.title: ["No."] * 20}, recovery={"rules": ["retry"]})
    assert told.ending[0] == "failed"
    assert told.recorded.actions == ["retry", "change_strategy", "skip"]


def told_with_doctor(till: MemoryTill, said: str, answers: list[Any], **tables: Any) -> MemoryTold:
    script = Script(till.oracle, {IMPLEMENT.title: answers})

    def answer(call: ChatCall) -> Answer | str:
        return said if call.title == DOCTOR.title else script(call)

    return till.solve(answer, models={"escalation": {"reasoning": ["thinker:70b"]}}, **tables)


def test_a_stronger_model_is_asked_why_and_its_hint_shown(till: MemoryTill) -> None:
    told = told_with_doctor(till, HINTED, [WRONG, OTHER], recovery={"replans_per_part": 0})
    assert told.ending == ("complete", "")
    assert told.recorded.actions[-2:] == ["diagnose", "retry"]
    assert told.recorded.recoveries[-1].rule.endswith("the doctor (model thinker:70b) has a hint")
    (asked,) = told.recorded.calls_of("doctor")
    assert models_asked(told, "doctor") == ["thinker:70b"]
    assert "return [people] * cents" in asked.request.prompt
    assert (
        "## Hint\nA guess, which may be wrong: Use divmod."
        in told.recorded.calls_of("implement")[-1].request.prompt
    )


def test_a_test_command_that_breaks_on_the_way_ends_with_a_question(till: MemoryTill) -> None:
    def breaks(_: ChatCall, right: str) -> str:
        till.tests_are_broken = True
        return right

    told = till.solve_scripted({IMPLEMENT.title: [breaks]})
    assert told.recorded.outcomes == ["infrastructure", "infrastructure"]
    assert told.recorded.actions == ["diagnose", "retry", "diagnose", "needs_human"]
    status, reason = told.ending
    assert status == "needs_human"
    assert reason.endswith("the test command gives no result, with or without the edits: what does it need?")
    till.tests_are_broken = False
    again = till.resume(Script(till.oracle), "It can be run again.")
    assert again.ending == ("complete", "")


class Case(Struct, frozen=True, kw_only=True):
    """A run that recovers, and the question at which its server dies."""

    action: str
    answers: tuple[Any, ...]
    """Of the first edit prompts."""
    dies_at: tuple[str, int]
    """Title and number, from 1."""
    changed: dict[str, str | None] | None = None
    tables: dict[str, Any] = field(default_factory=dict)


DIAGNOSED: dict[str, Any] = {**STRONGER, "recovery": {"replans_per_part": 0}}
REDRAWN = {"recovery": {"redraw": 3}, "solve": {**ONCE, "max_attempts": 2}}
CASES = (
    Case(action="replan", answers=(WRONG, WRONG, WRONG), dies_at=(PART_PLAN.title, 2)),
    Case(action="reduce_scope", answers=(cut, cut), dies_at=(IMPLEMENT.title, 3), changed={**TWO_FILES}),
    Case(action="diagnose", answers=(WRONG, OTHER), dies_at=(DOCTOR.title, 1), tables=DIAGNOSED),
    Case(
        action="escalate", answers=(WRONG,), dies_at=(IMPLEMENT.title, 2), tables={**STRONGER, "solve": ONCE}
    ),
    Case(action="retry", answers=(WRONG, OTHER), dies_at=(IMPLEMENT.title, 3), tables=REDRAWN),
)


def script_of(project: MemoryTill, case: Case) -> Answerer:
    script = Script(project.oracle, {IMPLEMENT.title: list(case.answers)})
    return lambda call: HINTED if call.title == DOCTOR.title else script(call)


def story(told: MemoryTold) -> list[Any]:
    """What must not depend on whether the run was interrupted."""
    recorded = told.recorded
    return [
        recorded.ending,
        [(relative_pass(row.task_id), row.action, row.rule) for row in recorded.recoveries],
        recorded.outcomes,
        sorted(relative_pass(row.task_id) for row in recorded.passes),
        [row.diff for row in recorded.attempts],
    ]


def lived(folder: Path, case: Case, *, broken: bool) -> list[Any]:
    """The story of the case's run; `broken`: it goes on after its server died, and replays."""
    with memory_till(folder, changed=case.changed, task=TWO_FILES_TASK) as project:
        script = script_of(project, case)
        answerer = dying(script, *case.dies_at) if broken else script
        told = project.solve(answerer, **case.tables)
        if broken:
            assert told.ending[0] != "complete"
            told = project.resume(answerer)
        assert told.ending == ("complete", "")
        assert case.action in told.recorded.actions
        if broken:
            assert story(project.replay()) == story(told)
    return story(told)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], list[Any]]:
    """The story of a case's run that nothing breaks off; the same wherever the server would die."""
    known: dict[tuple[Any, ...], list[Any]] = {}

    def story_of(case: Case) -> list[Any]:
        key = (case.action, case.answers)
        if key not in known:
            known[key] = lived(tmp_path_factory.mktemp("whole"), case, broken=False)
        return known[key]

    return story_of


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.action}, dies at {case.dies_at}")
def test_a_run_that_recovers_goes_on_as_if_nothing_had_been_and_replays(
    tmp_path: Path, case: Case, undisturbed: Callable[[Case], list[Any]]
) -> None:
    assert lived(tmp_path, case, broken=True) == undisturbed(case)
