"""What a run does about a step that does not work, beyond trying it again."""

import json
from pathlib import Path
from typing import Any

from testing.runs.solving import (
    MENDED_MONEY,
    TASK,
    TILL,
    UNITTEST,
    Project,
    Script,
    Told,
    edit,
    make_project,
    serving,
)
from testing.servers.ollama_script import Answer, ChatCall
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.execute.prompts.doctor import DOCTOR
from clean_room_agent.execute.prompts.implement import IMPLEMENT
from clean_room_agent.execute.prompts.part_plan import PART_PLAN

SPLIT = "    share = cents // people\n    return [share] * people"
WRONG = edit(SPLIT, "    return [cents]")
RECEIPT_TOO = {
    "till/money.py": MENDED_MONEY,
    "till/receipt.py": str(TILL["till/receipt.py"]).replace("total: ", "sum: "),
}


def cut(_: ChatCall, right: str) -> Answer:
    """The right answer, cut off in its middle."""
    return Answer(text=right[: len(right) // 2], done_reason="length")


def in_two_steps(_: ChatCall, right: str) -> str:
    """The plan, with a second step that needs the first."""
    plan = json.loads(right)
    (first,) = plan["steps"]
    second = {**first, "id": "s2", "description": "Say so.", "needs": [first["id"]]}
    return json.dumps({**plan, "steps": [first, second]})


def test_two_failures_alike_have_the_part_planned_again_with_attempts_left(till: Project) -> None:
    told = till.solve_scripted({IMPLEMENT.title: [WRONG] * 3}, solve={"max_attempts": 5})
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.actions == ["refine", "change_strategy", "replan"]
    assert json.loads(told.recorded.recoveries[-1].state)["step"]["replans_left"] == 1
    assert told.recorded.calls_of("implement")[-1].site.pass_id.endswith(":impl:p1:s1-2")
    shown = till.cra("show", f"{told.recorded.calls[0].site.pass_id[:8]}/p1/s1/3")
    assert "then replan: an approach flaw: two logic failures are 100% alike" in shown.out, shown.out


def test_a_step_cut_off_twice_is_cut_down_and_the_rest_planned_again(tmp_path: Path) -> None:
    project = make_project(tmp_path, changed=RECEIPT_TOO, task=f"{TASK}; till/receipt.py says sum, not total")
    told = project.solve_scripted({IMPLEMENT.title: [cut, cut]})
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.actions == ["retry", "reduce_scope"]
    steps = [row.task_id.partition(":impl:")[2] for row in told.recorded.passes if ":impl:" in row.task_id]
    assert steps == ["p1:s1", "p1:s1:retry_1", "p1:s1-a", "p1:s1-2"]
    again = told.recorded.calls_of("part_plan")[-1].request.prompt
    assert "left for later, after s1-a" in again
    assert b"sum: " in project.branch_file("till/receipt.py")


def test_what_was_cut_from_a_step_and_never_done_is_said(tmp_path: Path) -> None:
    project = make_project(tmp_path, changed=RECEIPT_TOO, task=f"{TASK}; till/receipt.py says sum, not total")
    told = project.solve_scripted({IMPLEMENT.title: [cut, cut]}, recovery={"replans_per_part": 0})
    assert told.code == 4, told.err
    assert told.recorded.ending[1].startswith("step p1/s1-b was given up: left for later, after s1-a")


def test_a_stronger_model_is_asked_once_the_coder_has_no_attempt_left(till: Project) -> None:
    script = Script(till.oracle, {IMPLEMENT.title: ["I cannot."] * 4})
    with OllamaServer(script, models=("coder:3b", "thinker:4b", "coder:14b")) as server:
        told = till.solve(server, models={"escalation": {"coding": ["coder:14b"]}}, solve={"max_attempts": 2})
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.actions == ["retry", "escalate"]
    asked: list[str] = [
        json.loads(call.request.request_body)["model"] for call in told.recorded.calls_of("implement")
    ]
    assert asked == ["coder:3b"] * 4 + ["coder:14b"]
    assert told.recorded.passes[-2].execute_model == "coder:14b"


def stuck(**tables: Any) -> dict[str, Any]:
    return {"recovery": {"replans_per_part": 0}, "solve": {"max_attempts": 1}, **tables}


def test_a_step_that_others_need_ends_with_a_question_and_goes_on_with_a_hint(till: Project) -> None:
    told = till.solve_scripted({PART_PLAN.title: [in_two_steps], IMPLEMENT.title: ["No."] * 2}, **stuck())
    assert (told.code, told.traces, len(told.sessions)) == (4, {}, 1), told.err
    status, reason = told.recorded.ending
    assert status == "needs_human"
    assert "step p1/s1 cannot be done: " in reason
    assert reason.endswith("Other steps need it")
    assert "cra solve --resume" in told.out
    assert '--hint "..."' in told.out
    run = told.recorded.run
    assert run is not None
    with serving(till) as server:
        till.configure(server.base_url, **stuck())
        again = till.cra("solve", "--resume", run.task_id[:8], "--hint", "Use divmod.")
        assert (again.code, again.recorded.ending) == (0, ("complete", "")), again.err
        assert "Use divmod." in again.recorded.calls_of("part_plan")[-1].request.prompt


def test_rows_that_are_switched_off_leave_the_plain_loop(till: Project) -> None:
    told = till.solve_scripted({IMPLEMENT.title: ["No."] * 20}, recovery={"rules": ["retry"]})
    assert (told.code, told.traces) == (1, {})
    assert told.recorded.actions == ["retry", "retry", "skip"]


def test_a_first_answer_that_failed_its_tests_is_drawn_again_from_the_same_prompt(till: Project) -> None:
    told = till.solve_scripted(
        {IMPLEMENT.title: [WRONG, WRONG]},
        solve={"max_attempts": 2, "max_refinement_loops": 0},
        recovery={"redraw": 3},
    )
    assert (told.code, told.traces) == (0, {}), told.err
    first, second, third = told.recorded.calls_of("implement")
    assert first.request.prompt == second.request.prompt == third.request.prompt
    assert len({call.request.request_body for call in (first, second, third)}) == 3
    assert told.recorded.outcomes == ["insufficient_context"] * 2 + ["applied_and_passed"]
    assert len({row.commit_hash for row in told.recorded.attempts}) == 2  # equal answers are tested once


STRONGER = {"escalation": {"reasoning": ["thinker:70b"]}}
REPLAN = json.dumps(
    {"analysis": "a", "category": "logic", "confidence": 90, "decision": "replan", "hint": ""}
)
ADVISED = json.dumps(
    {
        "analysis": "a",
        "category": "logic",
        "confidence": 90,
        "decision": "retry_with_fix",
        "hint": "Use divmod.",
    }
)


def told_with_doctor(till: Project, said: str, answers: list[Any], **tables: Any) -> Told:
    script = Script(till.oracle, {IMPLEMENT.title: answers})

    def answer(call: ChatCall) -> Answer | str:
        return said if call.title == DOCTOR.title else script(call)

    with OllamaServer(answer, models=("coder:3b", "thinker:4b", "thinker:70b")) as server:
        return till.solve(server, models=STRONGER, **tables)


def test_a_stronger_model_is_asked_why_and_its_hint_shown(till: Project) -> None:
    other = edit(SPLIT, "    return [people] * cents")
    told = told_with_doctor(till, ADVISED, [WRONG, other], recovery={"replans_per_part": 0})
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.actions[-2:] == ["diagnose", "retry"]
    assert told.recorded.recoveries[-1].rule.endswith("the doctor (model thinker:70b) has a hint")
    (asked,) = told.recorded.calls_of("doctor")
    assert json.loads(asked.request.request_body)["model"] == "thinker:70b"
    assert "return [people] * cents" in asked.request.prompt
    assert "## Hint\nUse divmod." in told.recorded.calls_of("implement")[-1].request.prompt


def test_the_doctor_may_have_the_part_planned_again(till: Project) -> None:
    other = edit(SPLIT, "    raise ValueError(cents)")
    told = told_with_doctor(till, REPLAN, [WRONG, other])
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.actions[-2:] == ["diagnose", "replan"]
    assert told.recorded.recoveries[-1].rule == "the doctor (model thinker:70b): replan"


def test_a_diagnosis_that_cannot_be_read_changes_nothing(till: Project) -> None:
    other = edit(SPLIT, "    raise ValueError(cents)")
    told = told_with_doctor(till, "It is late.", [WRONG, other])
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.actions[-1] in {"retry", "change_strategy"}


def test_a_test_command_that_breaks_on_the_way_ends_with_a_question(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    breaking = f"test ! -e {gone} || exit 127; {UNITTEST}"

    def breaks(_: ChatCall, right: str) -> str:
        gone.touch()
        return right

    project = make_project(tmp_path, test_command=breaking)
    told = project.solve_scripted({IMPLEMENT.title: [breaks]})
    assert (told.code, told.traces) == (4, {}), told.err
    assert told.recorded.outcomes == ["infrastructure", "infrastructure"]
    assert told.recorded.actions == ["diagnose", "retry", "diagnose", "needs_human"]
    status, reason = told.recorded.ending
    assert status == "needs_human"
    assert reason.endswith("the test command gives no result, with or without the edits: what does it need?")
    gone.unlink()
    run = told.recorded.run
    assert run is not None
    with serving(project) as server:
        project.configure(server.base_url)
        again = project.cra("solve", "--resume", run.task_id[:8], "--hint", "It can be run again.")
    assert (again.code, again.recorded.ending) == (0, ("complete", "")), again.err
