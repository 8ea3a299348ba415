"""`cra apply` and `cra apply --undo`."""

import contextlib
import os
import signal
from unittest.mock import patch

import pytest
from testing.runs.solving import MENDED_MONEY, MONEY, Project

from clean_room_agent.db.connection import get_connection


def money(till: Project) -> str:
    return (till.top / "till" / "money.py").read_text()


def test_apply_brings_the_result_in_once_and_says_so_the_second_time(till: Project, solved: str) -> None:
    first = till.cra("apply", solved[:8])
    assert (first.code, first.out) == (0, "changed till/money.py\n")
    assert money(till) == MENDED_MONEY
    second = till.cra("apply", solved)
    assert (second.code, second.out) == (0, f"nothing to do: run {solved[:8]} is applied already\n")
    assert second.before == second.after


def test_apply_is_refused_where_a_file_changed_since(till: Project, solved: str) -> None:
    (till.top / "till" / "money.py").write_text(MONEY + "\n# mine\n")
    told = till.cra("apply", solved)
    assert (told.code, told.out) == (2, "")
    assert "till/money.py" in told.err
    assert money(till) == MONEY + "\n# mine\n"


def test_apply_lets_other_changed_files_be(till: Project, solved: str) -> None:
    (till.top / "till" / "receipt.py").write_text("# mine\n")
    assert till.cra("apply", solved, "--json").code == 0
    assert (till.top / "till" / "receipt.py").read_text() == "# mine\n"
    assert money(till) == MENDED_MONEY


def test_what_was_applied_can_be_taken_back_with_uncommitted_work_as_it_was(
    till: Project, solved: str
) -> None:
    (till.top / "till" / "receipt.py").write_text("# mine\n")
    till.cra("apply", solved)
    told = till.cra("apply", "--undo", solved)
    assert (told.code, told.out) == (0, "put back till/money.py\n")
    assert money(till) == MONEY
    assert (till.top / "till" / "receipt.py").read_text() == "# mine\n"
    again = till.cra("apply", "--undo", solved)
    assert (again.code, again.out) == (0, f"nothing to do: run {solved[:8]} is not applied\n")
    assert till.cra("apply", solved).out == "changed till/money.py\n"


def test_what_was_applied_and_changed_since_is_not_taken_back(till: Project, solved: str) -> None:
    till.cra("apply", solved)
    (till.top / "till" / "money.py").write_text(MENDED_MONEY + "\n# mine\n")
    told = till.cra("apply", "--undo", solved)
    assert (told.code, told.out) == (2, "")
    assert "changed here since it was applied: till/money.py; nothing was taken back" in told.err
    assert money(till) == MENDED_MONEY + "\n# mine\n"


@pytest.mark.parametrize("undo", [False, True])
def test_an_apply_that_was_killed_is_completed_or_taken_back_by_the_next(
    till: Project, solved: str, *, undo: bool
) -> None:
    def kill(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        with patch("clean_room_agent.tree_update._replace_file", kill):
            till.run_here("apply", solved)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert money(till) == MONEY
    assert till.run_here("apply", solved, *["--undo"] * undo)[0] == 0
    assert money(till) == (MONEY if undo else MENDED_MONEY)
    assert list(till.top.rglob(".cra-*")) == []


def test_what_was_discarded_is_not_applied(till: Project, solved: str) -> None:
    till.cra("discard", solved)
    told = till.cra("apply", solved)
    assert told.code == 2
    assert "was discarded" in told.err
    assert money(till) == MONEY


def test_an_unproven_result_is_applied_and_said_to_be_one(till: Project, solved: str) -> None:
    with contextlib.closing(get_connection("raw", repo_path=till.top)) as conn, conn:
        conn.execute("UPDATE orchestrator_runs SET status = 'unproven', reason = 'nothing shows it'")
    told = till.cra("apply", solved)
    assert (told.code, told.out) == (0, "changed till/money.py\n")
    assert f"run {solved[:8]} is unproven: nothing shows it" in told.err
    assert "unproven" not in till.cra("apply", solved, "--undo").err
