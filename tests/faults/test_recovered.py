"""What a run does about a step that does not work, as a command: it asks a person, it goes on where its server died, and it replays.
What it decides is said in tests/orchestrator/test_recovered_runs.py.
"""

import json
from pathlib import Path
from typing import Any

from testing.runs.memory_till import dying
from testing.runs.solving import MENDED_MONEY, TASK, Project, Script, make_project, serving
from testing.runs.spoiled_answers import TOTAL, WRONG, cut
from testing.servers.ollama_script import ChatCall

from clean_room_agent.execute.prompts.implement import IMPLEMENT
from clean_room_agent.execute.prompts.plans import PART_PLAN


def in_two_steps(_: ChatCall, right: str) -> str:
    """The plan, with a second step that needs the first."""
    plan = json.loads(right)
    (first,) = plan["steps"]
    second = {**first, "id": "s2", "description": "Say so.", "needs": [first["id"]]}
    return json.dumps({**plan, "steps": [first, second]})


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


def test_a_run_whose_server_dies_while_a_part_is_planned_again_goes_on_and_replays(tmp_path: Path) -> None:
    changed = {"till/money.py": MENDED_MONEY, "till/receipt.py": TOTAL}
    project = make_project(tmp_path, changed=changed, task=f"{TASK}; till/receipt.py says sum, not total")
    script = Script(project.oracle, {IMPLEMENT.title: [cut, cut, WRONG]})
    with serving(project, dying(script, PART_PLAN.title, 2)) as server:
        told = project.solve(server)
        assert told.code != 0
        assert told.recorded.run is not None
        told = project.cra("solve", "--resume", told.recorded.run.task_id[:8])
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.actions[:2] == ["retry", "reduce_scope"]
    assert project.branch_file("till/money.py").decode() == MENDED_MONEY
    assert b"sum: " in project.branch_file("till/receipt.py")
    assert project.run_here("replay", "@")[0] == 0
