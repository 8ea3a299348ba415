"""Ctrl-C: the worktree goes, the record says so, what was done is kept. A server that dies half-way is in `test_resumed.py`."""

import json
import os
import signal
import threading
from pathlib import Path

import pytest
from testing import repositories
from testing.runs.solving import MENDED_MONEY, Project, Told, edit
from testing.servers.ollama_script import ChatCall

from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import PART_PLAN

SPLIT = "    share = cents // people\n    return [share] * people"


def check_interrupted(told: Told) -> None:
    assert (told.code, told.traces, told.branches, told.out) == (130, {}, (), "")
    assert "error: interrupted" in told.err
    assert "Traceback" not in told.err
    assert told.recorded.ending == ("interrupted", "interrupted")
    assert told.recorded.run is not None
    assert told.recorded.run.completed_at is None
    assert all(each.completed_at for each in told.recorded.passes)
    assert told.recorded.passes[-1].detail == "stopped: interrupted"
    assert len(told.sessions) == 1


def press(_: ChatCall, right: str) -> str:
    """Ctrl-C while the model writes."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    return right


def test_ctrl_c_while_tests_run_ends_them_too(till: Project, tmp_path: Path) -> None:
    child = tmp_path / "child"
    lines = (
        "    import os, signal, time\n"
        f"    open({str(child)!r}, 'w').write(str(os.getpid()))\n"
        f"    os.kill({os.getpid()}, signal.SIGINT)\n"
        "    time.sleep(600)"
    )
    told = till.solve_scripted({IMPLEMENT.title: [edit(SPLIT, f"{lines}\n{SPLIT}")]})
    check_interrupted(told)
    with pytest.raises(ProcessLookupError):
        os.kill(int(child.read_text()), 0)


def two_steps(call: ChatCall, right: str) -> str:
    """The oracle's step, and another one for the receipts after it."""
    plan = json.loads(right)
    target = {"path": "till/receipt.py", "role": "modify"}
    receipts = {
        "description": "Say sum.",
        "files": [target],
        "id": "s2",
        "needs": ["s1"],
        "symbols": ["receipt"],
    }
    return json.dumps({**plan, "steps": [*plan["steps"], receipts]})


def test_ctrl_c_while_a_model_answers_keeps_the_accepted_step_under_the_tasks_refs(till: Project) -> None:
    """Other prompts are in `tests/orchestrator/test_ended_runs.py`."""
    told = till.solve_scripted({PART_PLAN.title: [two_steps], IMPLEMENT.title: [None, press]})
    check_interrupted(told)
    run = told.recorded.run
    assert run is not None
    assert (run.steps_completed, run.total_steps) == (1, 2)
    kept = repositories.read_tree(till.top, f"refs/cra/{run.task_id}/head")
    assert kept["till/money.py"] == MENDED_MONEY.encode()
