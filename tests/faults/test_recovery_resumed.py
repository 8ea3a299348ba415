"""Runs that recovered from failures go on where they were broken off, and replay to the same end."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from testing.runs.solving import MENDED_MONEY, TASK, TILL, Project, Script, Told, edit, make_project
from testing.servers.ollama_script import Answer, Answerer, ChatCall
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.artifacts.names import relative_pass
from clean_room_agent.execute.prompts.doctor import DOCTOR
from clean_room_agent.execute.prompts.implement import IMPLEMENT
from clean_room_agent.execute.prompts.part_plan import PART_PLAN

SPLIT = "    share = cents // people\n    return [share] * people"
WRONG = edit(SPLIT, "    return [cents]")
OTHER = edit(SPLIT, "    return [people] * cents")
RECEIPT = str(TILL["till/receipt.py"]).replace("total: ", "sum: ")
TWO_FILES = {"till/money.py": MENDED_MONEY, "till/receipt.py": RECEIPT}
HINTED = json.dumps(
    {
        "analysis": "a",
        "category": "logic",
        "confidence": 90,
        "decision": "retry_with_fix",
        "hint": "Use divmod.",
    }
)
STRONGER = {"models": {"escalation": {"coding": ["coder:14b"], "reasoning": ["thinker:70b"]}}}
ONCE = {"max_attempts": 1, "max_refinement_loops": 0}
DEAD = Answer(status=500, error="llama runner process has unexpectedly stopped")


def cut(_: ChatCall, right: str) -> Answer:
    """The right answer, cut off in its middle."""
    return Answer(text=right[: len(right) // 2], done_reason="length")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A run that recovers, and the question at which its server dies."""

    action: str
    answers: tuple[Any, ...]
    """Of the first edit prompts."""
    dies_at: tuple[str, int]
    """Title and number, from 1."""
    changed: dict[str, str] | None = None
    tables: dict[str, Any] = field(default_factory=dict)


CASES = (
    Case(action="replan", answers=(WRONG, WRONG, WRONG), dies_at=(PART_PLAN.title, 2)),
    Case(action="reduce_scope", answers=(cut, cut), dies_at=(IMPLEMENT.title, 3), changed=TWO_FILES),
    Case(action="reduce_scope", answers=(cut, cut), dies_at=(PART_PLAN.title, 2), changed=TWO_FILES),
    Case(
        action="diagnose",
        answers=(WRONG, OTHER),
        dies_at=(IMPLEMENT.title, 3),
        tables={**STRONGER, "recovery": {"replans_per_part": 0}},
    ),
    Case(
        action="diagnose",
        answers=(WRONG, OTHER),
        dies_at=(DOCTOR.title, 1),
        tables={**STRONGER, "recovery": {"replans_per_part": 0}},
    ),
    Case(
        action="escalate", answers=(WRONG,), dies_at=(IMPLEMENT.title, 2), tables={**STRONGER, "solve": ONCE}
    ),
    Case(
        action="retry",
        answers=(WRONG, OTHER),
        dies_at=(IMPLEMENT.title, 3),
        tables={"recovery": {"redraw": 3}, "solve": {**ONCE, "max_attempts": 2}},
    ),
)


def script_of(project: Project, case: Case) -> Answerer:
    script = Script(project.oracle, {IMPLEMENT.title: list(case.answers)})
    return lambda call: HINTED if call.title == DOCTOR.title else script(call)


def dying(script: Answerer, title: str, number: int) -> Callable[[ChatCall], Answer | str]:
    """The script, which is not asked once: at that call, the server dies."""
    left = [number]

    def answer(call: ChatCall) -> Answer | str:
        left[0] -= call.title == title
        if call.title == title and left[0] == 0:
            return DEAD
        return script(call)

    return answer


def story(told: Told) -> list[Any]:
    """What must not depend on whether the run was broken off."""
    recorded = told.recorded
    return [
        recorded.ending,
        [(relative_pass(row.task_id), row.action, row.rule) for row in recorded.recoveries],
        recorded.outcomes,
        sorted(relative_pass(row.task_id) for row in recorded.passes),
        [row.diff for row in recorded.attempts],
    ]


def lived(folder: Path, case: Case, *, broken: bool) -> list[Any]:
    """The story of the case's run, which replays; `broken`: it goes on after its server died."""
    project = make_project(folder, changed=case.changed, task=f"{TASK}; till/receipt.py says sum, not total")
    script = script_of(project, case)
    answerer = dying(script, *case.dies_at) if broken else script
    with OllamaServer(answerer, models=("coder:3b", "thinker:4b", "coder:14b", "thinker:70b")) as server:
        told = project.solve(server, **case.tables)
        if broken:
            assert told.code != 0
            assert told.recorded.run is not None
            told = project.cra("solve", "--resume", told.recorded.run.task_id[:8])
    assert (told.code, told.traces) == (0, {}), told.err
    assert case.action in told.recorded.actions
    assert told.recorded.run is not None
    assert project.cra("replay", told.recorded.run.task_id[:8]).code == 0
    return story(told)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], list[Any]]:
    """The story of a case's run when its server lives, made once for all cases that differ in where it dies."""
    stories: dict[str, list[Any]] = {}

    def of(case: Case) -> list[Any]:
        if case.action not in stories:
            stories[case.action] = lived(tmp_path_factory.mktemp(case.action), case, broken=False)
        return stories[case.action]

    return of


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.action}, dies at {case.dies_at}")
def test_a_run_that_recovers_goes_on_as_if_nothing_had_been_and_replays(
    tmp_path: Path, case: Case, undisturbed: Callable[[Case], list[Any]]
) -> None:
    assert lived(tmp_path, case, broken=True) == undisturbed(case)
