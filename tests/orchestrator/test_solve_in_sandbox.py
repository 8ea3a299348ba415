"""Whole runs in the sandbox, and what a person is told of it."""

from pathlib import Path

from testing.runs.bills import ALWAYS, bills_project, events_of
from testing.runs.solving import MONEY_TESTS, TILL, edit, make_project
from testing.sandboxes import installed, on_disk

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


def test_candidates_in_the_sandbox_see_nothing_of_one_another_and_reach_nothing_of_the_user_s(
    tmp_path: Path,
) -> None:
    installed()
    files = {
        **TILL,
        "tests/test_money.py": MONEY_TESTS + PRYING + ALONE,
        ".gitignore": "*.env\n",
        ".worktreeinclude": "*.env\n",
    }
    till = make_project(tmp_path, files)
    (till.home / "private").write_text("x")
    (till.top / "local.env").write_text("here")
    wrong = edit("    share = cents // people\n    return [share] * people", "    return [cents]")
    told = till.solve_scripted(
        {IMPLEMENT.title: [wrong]}, solve={"samples": 2}, testing={"parallel": 2}, sandbox=INSIDE
    )
    assert (told.code, told.traces) == (0, {}), told.err
    assert "sandbox: bubblewrap" in told.err
    assert ".worktreeinclude: 1 ignored file copied in for the tests" in told.err
    assert told.before == told.after
    assert "applied_and_passed" in told.recorded.outcomes
    assert len(told.recorded.outcomes) == 2
    assert "AloneTest" not in " ".join(row.error or "" for row in told.recorded.attempts)


def test_a_scaffold_is_imported_in_the_sandbox(tmp_path: Path) -> None:
    """That one which does something at its import is no declaration is in `tests/execute/edits/test_stubs.py`."""
    installed()
    told = bills_project(tmp_path).solve_scripted(solve=ALWAYS, sandbox=INSIDE)
    assert (told.code, told.traces) == (0, {}), told.err
    ((kind, detail),) = events_of(told)
    assert (kind, "it parses and imports" in detail) == ("scaffold", True)
