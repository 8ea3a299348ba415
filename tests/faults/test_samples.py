"""An attempt that draws several candidates, as a command: what is chosen is shown and landed, and a run that is ended among them
leaves nothing behind and goes on. What is chosen is said in tests/orchestrator/steps/test_drawn_candidates.py.
"""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from testing.forked import Forked
from testing.runs.solving import MONEY_TESTS, ONE_ATTEMPT, TILL, UNITTEST, Script, edit, make_project
from testing.runs.spoiled_answers import SPLIT, WRONG
from testing.servers.ollama_script import Answer, ChatCall
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.execute.implement import IMPLEMENT

PARTLY = edit(
    SPLIT, "    share = cents // people\n    return [cents - share * (people - 1)] + [share] * (people - 1)"
)
"""Keeps every cent, and spreads them unevenly."""
EVENLY = "\n    def test_shares_are_even(self):\n        self.assertEqual(split(101, 3), [34, 34, 33])\n"
HARMLESS = edit(SPLIT, f"    # even shares\n{SPLIT}")
FAILED = "insufficient_context"
"""What `WRONG` comes to: the test that it breaks is not shown."""


def test_the_best_of_a_round_is_accepted_and_the_losers_are_shown(tmp_path: Path) -> None:
    project = make_project(tmp_path, {**TILL, "tests/test_money.py": MONEY_TESTS + EVENLY})
    told = project.solve_scripted(
        {IMPLEMENT.title: [WRONG, PARTLY, HARMLESS]}, "--samples", "3", **ONE_ATTEMPT
    )
    assert (told.code, told.traces) == (4, {}), told.err
    assert told.recorded.outcomes == [FAILED, "applied_and_passed", "applied_and_passed"]
    assert b"people - 1" in project.branch_file("till/money.py")
    shown = project.run_here("show", "@/p1/s1")[1]
    assert "not chosen: attempt 2 passed, this one did not" in shown, shown
    assert "not chosen: attempt 2 has 1 of 2 goal tests green, this one 0" in shown, shown
    change = project.run_here("show", "@", "--diff")[1]
    assert "even shares" not in change, change
    assert project.run_here("show", "@", "--why", "till/money.py")[0] == 0


SIGNALLER = """\
import os, pathlib, sys, time

number, flag, run = int(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
if os.getcwd().endswith("-2") and not flag.exists():
    flag.touch()
    os.kill(int(run.read_text()), number)
    time.sleep(3600)
"""
"""A test command that, in the second worktree, sends a signal to the run itself, once, and does not end."""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_run_ended_while_candidates_are_tested_leaves_no_worktree_and_goes_on(
    tmp_path: Path, number: int, code: int
) -> None:
    script, flag, run = (tmp_path / name for name in ("signaller.py", "flag", "run"))
    script.write_text(SIGNALLER)
    command = f"{sys.executable} {script} {int(number)} {flag} {run} && {UNITTEST}"
    project = make_project(tmp_path, test_command=command)
    right = Script(project.oracle)

    def first_is_wrong(call: ChatCall) -> Answer | str:
        return WRONG if call.title == IMPLEMENT.title and call.options["seed"] == 1 else right(call)

    tables: dict[str, Any] = {
        "solve": {**ONE_ATTEMPT["solve"], "samples": 2},
        "testing": {"test_command": command, "parallel": 2},
    }
    with OllamaServer(first_is_wrong) as server:
        project.configure(server.base_url, **tables)
        with Forked(project, "solve", project.task) as process:
            run.write_text(str(process.pid))
            _, err = process.communicate()
        assert process.returncode == code, err
        told = project.observe(lambda: (0, "", ""))
        assert len(told.worktrees) == (0 if code == 130 else 4), "each by its folder and by its note in git"
        assert told.recorded.run is not None
        told = project.cra("solve", "--resume", told.recorded.run.task_id[:8])
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.outcomes == [FAILED, "applied_and_passed"]
