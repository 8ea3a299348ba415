"""What a run does about a step that does not work, as a command: it asks a person. What it decides, and that it goes on and replays,
is said in tests/orchestrator/test_recovered_runs.py.
"""

import json
from typing import Any

from testing.runs.solving import Project, serving
from testing.servers.ollama_script import ChatCall

from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import PART_PLAN


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
