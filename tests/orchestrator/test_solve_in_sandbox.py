"""Whole runs in the sandbox, and what a person is told of it."""

from pathlib import Path

from testing.runs.bills import BILLS, BILLS_PATH, BILLS_TASK, BILLS_TESTS, PASSING_TESTS
from testing.runs.solving import TILL, make_project
from testing.sandboxes import installed, on_disk
from testing.servers.ollama_script import ChatCall

from clean_room_agent.execute.implement import IMPLEMENT

__all__ = ["on_disk"]  # in the place of `tmp_path`

INSIDE = {"mode": "bwrap"}
PRYING = """

class PryTest(unittest.TestCase):
    def test_pry(self):
        import os, pathlib, socket
        seen = pathlib.Path.home()
        self.assertFalse((seen / "private").exists())
        self.assertFalse(pathlib.Path(".clean_room").exists())
        self.assertEqual(pathlib.Path("local.env").read_text(), "here")
        with self.assertRaises(OSError):
            socket.create_connection(("192.0.2.1", 9), timeout=1)
"""


ALONE = """

class AloneTest(unittest.TestCase):
    def test_alone(self):
        import pathlib, time
        mark = pathlib.Path("mark")
        self.assertFalse(mark.exists())
        mark.write_text("x")
        time.sleep(0.5)
        mark.unlink()
"""


def wrong(_: ChatCall, right: str) -> str:
    """The edits, with another sum in them."""
    return right.replace("// 100", "// 10")


def test_in_the_sandbox_candidates_see_nothing_of_one_another_or_the_user_s(
    tmp_path: Path,
) -> None:
    installed()
    files = {
        **TILL,
        "tests/test_money.py": PASSING_TESTS + PRYING + ALONE,
        "tests/test_bills.py": BILLS_TESTS,
        ".gitignore": "*.env\n",
        ".worktreeinclude": "*.env\n",
    }
    till = make_project(tmp_path, files, {BILLS_PATH: BILLS}, task=BILLS_TASK)
    (till.home / "private").write_text("x")
    (till.top / "local.env").write_text("here")
    told = till.solve_scripted(
        {IMPLEMENT.title: [wrong]},
        solve={"max_attempts": 3, "max_refinement_loops": 1, "samples": 2},
        testing={"parallel": 2},
        sandbox=INSIDE,
    )
    assert (told.code, told.traces) == (0, {}), told.err
    assert "sandbox: bubblewrap" in told.err
    assert ".worktreeinclude: 1 ignored file copied in for the tests" in told.err
    assert told.before == told.after
    assert "applied_and_passed" in told.recorded.outcomes
    assert len(told.recorded.outcomes) == 2
    assert len({row.commit_hash for row in told.recorded.attempts}) == 2
    assert "AloneTest" not in " ".join(row.error or "" for row in told.recorded.attempts)
