"""What stands around a run and goes wrong: folders, databases, and tests that tamper with the worktree."""

import sys
from pathlib import Path

import pytest
from testing import repositories
from testing.patience import PATIENCE
from testing.runs.solving import (
    MENDED_MONEY,
    MONEY_TESTS,
    ONE_ATTEMPT,
    TASK,
    TILL,
    Project,
    edit,
    make_project,
    serving,
)

from clean_room_agent import proc
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.workspace import Workspace

DEAF = """\
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
os.execv(sys.executable, [sys.executable, "-m", "clean_room_agent", "index"])
"""


def test_a_parent_that_ignored_and_blocked_the_signal_of_children_is_no_hindrance(till: Project) -> None:
    command = (sys.executable, "-c", DEAF)
    done = proc.run(command, cwd=till.top, env=till.environment(), timeout=PATIENCE, check=False)
    assert (done.returncode, done.timed_out) == (0, False), done.stderr
    assert Workspace(repo=till.top).curated.exists()


def test_a_place_for_worktrees_that_is_no_folder_is_named_before_anything_is_asked(
    till: Project, tmp_path: Path
) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    with serving(till) as server:
        told = till.solve(server, worktree={"root": str(blocked)})
        assert server.requests == []
    assert (told.code, told.traces, told.branches, told.sessions) == (2, {}, (), ())
    assert f"error: {blocked} is not a folder" in told.err
    assert "[worktree] root" in told.err


def test_a_record_that_is_no_database_is_refused_and_left_alone(till: Project) -> None:
    raw = Workspace(repo=till.top).raw
    with serving(till) as server:
        till.configure(server.base_url)
        raw.write_bytes(b"This is not a database, but it is long enough to look at.\n" * 40)
        raw.chmod(0o600)
        before = raw.read_bytes()
        code, out, err = till.run_here("solve", TASK)
        assert server.requests == []
    assert (code, out, raw.read_bytes()) == (2, "", before), err
    assert str(raw) in err


TAMPERS = {
    "change other files, leave some, and take the rights of folders": (
        "    open('till/receipt.py', 'w').write('broken(')\n"
        "    open('left.txt', 'w').write('left')\n"
        "    open('till/left.py', 'w').write('left = 1')\n"
        "    import os\n    os.makedirs('locked/in', exist_ok=True)\n    os.chmod('locked', 0)"
    ),
    "remove the whole tree": "    import shutil\n    shutil.rmtree('till', ignore_errors=True)\n    shutil.rmtree('.git', ignore_errors=True)",
}


@pytest.mark.parametrize("name", sorted(TAMPERS))
def test_what_tests_do_to_the_worktree_reaches_neither_result_nor_repository(
    tmp_path: Path, name: str
) -> None:
    """That they put a git folder in the place of their own is in `test_meanwhile.py`."""
    ran = tmp_path / "ran"
    lines = TAMPERS[name] + f"\n    open({str(ran)!r}, 'w').close()"
    indented = lines.replace("    ", "        ", 1).replace("\n    ", "\n        ")
    tests = MONEY_TESTS + f"\n    def test_zz_tamper(self):\n{indented}\n"
    told_by = make_project(tmp_path, {**TILL, "tests/test_money.py": tests})
    told = told_by.solve_scripted()
    assert (told.code, told.traces) == (0, {}), told.err
    assert ran.exists()
    held = repositories.read_tree(told_by.top, told.branches[0])
    assert held == {**repositories.read_tree(told_by.top, "HEAD"), "till/money.py": MENDED_MONEY.encode()}


FOLDERS = ["node_modules", ".venv/lib", "venv", "till/.git", "left", "tests/__pycache__"]
PLANT = f"""\
    import os
    for folder in {FOLDERS}:
        os.makedirs(folder, exist_ok=True)
        with open(folder + "/planted.py", "w") as file:
            file.write("def split(cents, people):\\n    return [cents] + [0] * (people - 1) if cents % people else [cents // people] * people\\n")
    return []"""
USE = f"""\
    import sys
    sys.path[:0] = {FOLDERS}
    import planted
    return planted.split(cents, people)"""


def test_what_one_attempt_left_decides_no_later_one(till: Project) -> None:
    before = "    share = cents // people\n    return [share] * people"
    two = {**ONE_ATTEMPT, "solve": {"max_attempts": 2, "max_refinement_loops": 0}}
    told = till.solve_scripted({IMPLEMENT.title: [edit(before, PLANT), *[edit(before, USE)] * 20]}, **two)
    assert len(told.recorded.attempts) == 2
    assert (told.code, told.branches, told.traces) == (1, (), {}), told.out
    assert "No module named 'planted'" in told.recorded.validations[-1].test_output
