"""Whole runs by the decomposed route, in memory."""

import json

import pytest
from testing.runs.memory_run import TASK_ID
from testing.runs.memory_till import MemoryTill
from testing.runs.solving import MENDED_MONEY, TASK, Script, edit
from testing.servers.ollama_script import ChatCall

from clean_room_agent.db.raw.passes import list_plan_decisions
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import (
    ADJUSTMENT,
    ADJUSTMENT_FINALIZE,
    ADJUSTMENT_STEP_VIABILITY,
    CHANGE_POINTS,
    GOAL_CHECK,
    PART_PLAN,
    SAME_PART,
)

SAME_TOTAL = edit(
    "    result = 0\n    for share in shares:", "    result = sum(())\n    for share in shares:"
)
DECOMPOSED = {"planning": "decomposed", "adjusting": "decomposed"}
TWO_PLACES = json.dumps(
    {
        "analysis": "split loses cents.",
        "points": [
            {"change": "Give what is left over away.", "file": "till/money.py", "symbol": "split"},
            {"change": "Export it.", "file": "till/__init__.py", "symbol": ""},
        ],
        "summary": "Split every cent.",
    }
)


def press(_: ChatCall, __: str) -> str:
    """Ctrl-C while the model judges."""
    raise KeyboardInterrupt


def test_a_task_is_solved_by_small_questions_and_replays(till: MemoryTill) -> None:
    told = till.solve_scripted(orchestrator=DECOMPOSED)
    assert told.ending == ("complete", "")
    kinds = [call.site.call_type for call in told.recorded.calls]
    assert not {"meta_plan", "part_plan", "adjustment"} & {*kinds}
    assert [kind for kind in kinds if kind in {"change_points", "symbol_targets", "step_design"}] == [
        "change_points"
    ]
    assert told.files["till/money.py"] == MENDED_MONEY
    assert "1 part: p1 (decomposed: 0 decisions, 0 by the model)" in till.shown()
    assert till.replay().ending == ("complete", "")


def test_what_was_decided_stands_in_the_record_and_an_interrupted_pass_asks_only_what_is_open(
    till: MemoryTill,
) -> None:
    script = Script(till.oracle, {CHANGE_POINTS.title: [TWO_PLACES], SAME_PART.title: [press, "yes"]})
    broken_off = till.solve(script, orchestrator=DECOMPOSED)
    assert broken_off.ending[0] == "interrupted"
    told = till.resume(script)
    assert told.ending == ("complete", "")
    assert len(told.recorded.calls_of("change_points")) == 1
    (row,) = till.record.write(list_plan_decisions, TASK_ID)
    assert (row.question, row.item, row.yes) == ("same_part", "c1 c2", True)
    asked = [call for call in told.recorded.calls_of("same_part") if call.site.item == "c1 c2"]
    assert row.judgment.call_id == asked[-1].id
    shown = till.shown(decisions=True)
    assert "meta_plan: 1 decision about its plan" in shown
    assert "yes same_part c1 c2" in shown
    assert till.replay().files == told.files


def two_steps() -> str:
    def step(name: str, path: str, symbol: str, words: str) -> dict[str, object]:
        files = [{"path": path, "role": "modify"}]
        return {"description": words, "files": files, "id": name, "needs": [], "symbols": [symbol]}

    steps = [
        step("s1", "till/money.py", "total", "Let total take any numbers."),
        step("s2", "till/money.py", "split", "Give what is left over away."),
    ]
    return json.dumps({"analysis": "x", "steps": steps, "summary": "Split every cent."})


NO_EDITS = "I cannot do this."
NONE_REMAINS = '{"analysis": "Nothing is left.", "changes": ["s2: dropped"], "steps": []}'


@pytest.mark.parametrize("route", ["one-call", "decomposed"])
def test_an_adjustment_that_drops_what_the_task_asks_for_is_refused(till: MemoryTill, route: str) -> None:
    spoiled = {
        PART_PLAN.title: [two_steps()],
        IMPLEMENT.title: [NO_EDITS] * 2,  # the first step is given up
        ADJUSTMENT.title: [NONE_REMAINS],
        ADJUSTMENT_STEP_VIABILITY.title: ["no"],
        ADJUSTMENT_FINALIZE.title: [NONE_REMAINS],
        GOAL_CHECK.title: ["no"],
    }
    told = till.solve_scripted(spoiled, orchestrator={"adjusting": route}, solve={"max_attempts": 1})
    assert told.recorded.outcomes[1] == "applied_and_passed"
    assert told.files["till/money.py"] == MENDED_MONEY
    (checked,) = [call for call in told.recorded.calls_of("goal_check") if call.site.item != "(nothing)"]
    assert TASK in checked.request.prompt
    assert "s2: Give what is left over away. (till/money.py)" in checked.request.prompt
    shown = till.shown(decisions=True)
    assert "no  goal_check s2 to nothing" in shown
    if route == "decomposed":
        assert "no  adjustment_step_viability s2" in shown
        assert "yes adjustment_root_cause f1 s1 (tried)" in shown
