"""Ctrl-C: the worktree goes, the record says so, what was done is kept. A server that dies half-way is in `test_resumed.py`."""

import os
from pathlib import Path

import pytest
from testing.runs.solving import Project, Told, edit

from clean_room_agent.execute.implement import IMPLEMENT

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
