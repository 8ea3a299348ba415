"""Ctrl-C and a server that dies half-way: the worktree goes, the record says so, what was done is kept."""

import json
import os
import signal
import threading
from pathlib import Path

import pytest
from testing import repositories
from testing.runs.solving import MENDED_MONEY, Project, Told, edit
from testing.servers.ollama_script import Answer, ChatCall

from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import META_PLAN, PART_PLAN

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


@pytest.mark.parametrize(
    ("title", "before"), [(META_PLAN.title, "scope_batch"), (IMPLEMENT.title, "part_plan")]
)
def test_ctrl_c_while_a_model_answers_ends_the_run_cleanly(till: Project, title: str, before: str) -> None:
    told = till.solve_scripted({title: [press]})
    check_interrupted(told)
    name = next(prompt.name for prompt in PROMPTS if prompt.title == title)
    assert [call.site.call_type for call in told.recorded.calls][-1] in {name, before}


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


def test_ctrl_c_after_an_accepted_step_keeps_its_commit_under_the_tasks_refs(till: Project) -> None:
    told = till.solve_scripted({PART_PLAN.title: [two_steps], IMPLEMENT.title: [None, press]})
    check_interrupted(told)
    run = told.recorded.run
    assert run is not None
    assert (run.steps_completed, run.total_steps) == (1, 2)
    kept = repositories.read_tree(till.top, f"refs/cra/{run.task_id}/head")
    assert kept["till/money.py"] == MENDED_MONEY.encode()


def test_a_server_that_dies_after_an_accepted_step_leaves_a_partial_result(till: Project) -> None:
    dead = Answer(status=500, error="llama runner process has unexpectedly stopped")
    told = till.solve_scripted({PART_PLAN.title: [two_steps], IMPLEMENT.title: [None, dead]})
    assert (told.code, told.traces, len(told.branches), len(told.sessions)) == (4, {}, 1, 1), told.err
    status, reason = told.recorded.ending
    assert status == "partial"
    assert "failed with status 500: llama runner process has unexpectedly stopped" in reason
    assert reason in told.out
    assert "a smaller model or context_window needs less memory" in told.err
    assert "4 passed, 0 failed" in told.out
    assert till.branch_file("till/money.py") == MENDED_MONEY.encode()
