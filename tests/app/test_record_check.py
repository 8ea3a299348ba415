"""`cra check --record`: silent about a whole record, and one line with a remedy for each thing that is wrong."""

import contextlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from testing.repositories import git
from testing.runs.solving import Project

from clean_room_agent.workspace import Workspace, hold


def findings(project: Project, *flags: str) -> dict[str, list[str]]:
    """The faults by name; every one has a remedy."""
    code, out, err = project.run_here("check", "--record", "--json", *flags)
    assert err == ""
    answer = json.loads(out)
    assert answer["exit_code"] == code == (0 if answer["ok"] else 1)
    found: dict[str, list[str]] = {}
    for line in answer["checks"]:
        assert bool(line["remedy"]) == (not line["ok"]), line
        if not line["ok"]:
            found.setdefault(line["name"], []).append(line["text"])
    return found


def change(project: Project, *statements: str) -> None:
    """Change the record as another program would that got rid of the triggers and put them back."""
    with contextlib.closing(sqlite3.connect(Workspace(repo=project.top).raw)) as conn:
        triggers = conn.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            conn.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            conn.execute(statement)
        for _, sql in triggers:
            conn.execute(sql)
        conn.commit()


def test_a_whole_record_has_no_findings(till: Project, solved: str) -> None:
    assert findings(till) == {}
    assert findings(till, "--thorough") == {}
    code, out, _ = till.run_here("check", "--record")
    assert code == 0
    assert "ok   chains: whole: 1 runs, " in out


def test_no_record_is_nothing_to_complain_of(till: Project) -> None:
    assert findings(till) == {}


def test_a_failed_run_leaves_a_whole_record(till: Project) -> None:
    nonsense = {"Divide a task into parts": ["nonsense"] * 9}
    told = till.solve_scripted(nonsense, orchestrator={"plan_fallback": False})
    assert told.code != 0
    assert findings(till) == {}


CHANGES: dict[str, tuple[str, str, str]] = {
    "a prompt": (
        "UPDATE retrieval_llm_calls SET prompt = prompt || 'x' WHERE id = 3",
        "prompts",
        "the prompt of call 3 is not the one that was sent",
    ),
    "a reading": (
        "DELETE FROM call_readings WHERE call_id = (SELECT max(id) FROM retrieval_llm_calls)",
        "chains",
        "how the answer was read is not recorded",
    ),
    "a call": (
        "DELETE FROM retrieval_llm_calls WHERE id = 3",
        "chains",
        "refers to a row of retrieval_llm_calls that does not exist",
    ),
    "the tests": (
        "DELETE FROM validation_results WHERE attempt_id IS NOT NULL",
        "chains",
        "was accepted without a successful test run",
    ),
    "the decisions": ("DELETE FROM retrieval_decisions", "chains", "its pass records no decision"),
    "the order": ("DELETE FROM orchestrator_passes", "chains", "has ended and belongs to no run"),
    "the end of a pass": (
        "UPDATE task_runs SET completed_at = NULL WHERE id = 2",
        "chains",
        "is complete, and its pass",
    ),
    "the result": ("UPDATE orchestrator_runs SET result_commit = ''", "chains", "and no result"),
    "the archive": ("DELETE FROM session_archives", "sessions", "its session is lost"),
    "the process": (
        "UPDATE orchestrator_runs SET status = 'running', completed_at = NULL",
        "runs",
        "is recorded as running, but has no process",
    ),
    "the commit": (
        "UPDATE orchestrator_runs SET result_commit = '1234567890123456789012345678901234567890'",
        "results",
        "git no longer has the result of run",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_was_taken_from_a_run_is_named(till: Project, solved: str, what: str) -> None:
    statement, name, text = CHANGES[what]
    change(till, "PRAGMA foreign_keys = OFF", statement)
    found = findings(till)
    assert name in found, found
    assert any(text in line for line in found[name]), found


def _empty(raw: Path) -> None:
    raw.write_bytes(b"")


def _zeroed_page(raw: Path) -> None:
    data = bytearray(raw.read_bytes())
    data[4096 * 5 : 4096 * 6] = bytes(4096)
    raw.write_bytes(data)


def _cut(raw: Path) -> None:
    raw.write_bytes(raw.read_bytes()[: 4096 * 8])


def _text(raw: Path) -> None:
    raw.write_text("this is no database at all, and long enough to be looked at as one" * 20)


def _another(raw: Path) -> None:
    with contextlib.closing(sqlite3.connect(raw)) as conn:
        conn.execute("PRAGMA application_id = 1")


@pytest.mark.parametrize("damage", [_empty, _zeroed_page, _cut, _text, _another])
def test_a_damaged_file_is_named_and_nothing_else_is_asked(
    till: Project, solved: str, damage: Callable[[Path], None]
) -> None:
    damage(Workspace(repo=till.top).raw)
    assert list(findings(till)) == ["file"]


def test_a_running_run_that_a_process_holds_is_no_finding(till: Project, solved: str) -> None:
    change(till, "UPDATE orchestrator_runs SET status = 'running', completed_at = NULL")
    with hold(Workspace(repo=till.top).task_lock(solved)):
        assert findings(till) == {}


def test_files_that_others_can_read_are_named(till: Project, solved: str) -> None:
    raw = Workspace(repo=till.top).raw
    raw.chmod(0o644)
    assert findings(till) == {"private": [f"others can read {raw}"]}


def test_a_session_that_was_left_or_damaged_is_named(till: Project, solved: str) -> None:
    workspace = Workspace(repo=till.top)
    workspace.session(solved).touch(mode=0o600)
    first, second = findings(till)["sessions"]
    assert first.endswith("has ended, but its session is not archived")
    assert second.endswith("is not the session database, but an empty file")


def test_a_branch_may_be_merged_or_renamed_but_not_lost(till: Project, solved: str) -> None:
    branch = f"cra/{solved[:8]}"
    git(till.top, "branch", "-m", branch, "mine")
    assert findings(till) == {}
    git(till.top, "branch", "-D", "mine")
    for ref in git(till.top, "for-each-ref", "--format=%(refname)", "refs/cra/").splitlines():
        git(till.top, "update-ref", "-d", ref)
    (only,) = findings(till)["results"]
    assert only.startswith("no branch holds the result of run")
    assert till.run_here("discard", solved)[0] == 0
    assert findings(till) == {}


def test_the_two_suites_exclude_one_another(till: Project) -> None:
    assert till.run_here("check", "--record", "--sandbox")[0] == 2
