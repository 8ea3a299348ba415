"""What is done with a run's result: events, apply, discard, replay."""

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from testing.patience import PATIENCE, wait_until
from testing.repositories import git
from testing.runs.solving import MENDED_MONEY, MONEY, Project, Told, serving

from clean_room_agent.workspace import Workspace


def money(till: Project) -> str:
    return (till.top / "till" / "money.py").read_text()


def refs(till: Project) -> list[str]:
    return git(till.top, "for-each-ref", "--format=%(refname)", "refs/cra", "refs/heads/cra").split()


def test_the_events_are_a_line_of_json_each(till: Project, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with serving(till) as server:
        told = till.solve(server, "--events", str(path))
    assert told.code == 0
    names = [json.loads(line)["event"] for line in path.read_text().splitlines()]
    assert (names[0], names[-1]) == ("RunStarted", "RunFinished")
    assert {"PassStarted", "PassFinished", "TestsStarted", "TestsFinished"} <= set(names)


def test_the_events_can_go_to_standard_output(till: Project) -> None:
    with serving(till) as server:
        told = till.solve(server, "--events", "-", "--json")
    lines = [json.loads(line) for line in told.out.splitlines()]
    assert lines[0]["event"] == "RunStarted"
    assert lines[-1]["status"] == "complete"


def test_json_is_the_only_thing_on_standard_output(till: Project) -> None:
    with serving(till) as server:
        till.configure(server.base_url)
        told = till.cra_process("solve", till.task, "--json")
    answer = json.loads(told.out)
    assert (told.code, answer["status"]) == (0, "complete")
    assert answer["tests"]["after"]["failed"] == 0
    assert "baseline tests" in told.err
    assert "\x1b" not in told.err


def test_apply_brings_the_result_in_once_and_says_so_the_second_time(till: Project, solved: str) -> None:
    first = till.cra("apply", solved[:8])
    assert (first.code, first.out) == (0, "changed till/money.py\n")
    assert money(till) == MENDED_MONEY
    second = till.cra("apply", solved)
    assert (second.code, second.out) == (0, "nothing to do: it stands there already\n")
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
    assert (again.code, again.out) == (0, "nothing to do: it does not stand there\n")
    assert till.cra("apply", solved).out == "changed till/money.py\n"


def test_what_was_applied_and_changed_since_is_not_taken_back(till: Project, solved: str) -> None:
    till.cra("apply", solved)
    (till.top / "till" / "money.py").write_text(MENDED_MONEY + "\n# mine\n")
    told = till.cra("apply", "--undo", solved)
    assert (told.code, told.out) == (2, "")
    assert "changed here since it was applied: till/money.py; nothing was taken back" in told.err
    assert money(till) == MENDED_MONEY + "\n# mine\n"


def test_solve_can_apply_at_once(till: Project) -> None:
    with serving(till) as server:
        told = till.solve(server, "--apply")
    assert told.code == 0
    assert money(till) == MENDED_MONEY
    applied = [event.detail for event in told.recorded.events if event.kind == "applied"]
    assert applied == ["till/money.py"]


def test_discard_leaves_the_record_alone(till: Project, solved: str) -> None:
    assert refs(till)
    told = till.cra("discard", solved[:8])
    assert told.code == 0
    assert f"deleted refs/heads/cra/{solved[:8]}" in told.out
    assert refs(till) == []
    assert told.recorded.run is not None
    assert told.traces == {}


def test_what_was_discarded_is_not_applied(till: Project, solved: str) -> None:
    till.cra("discard", solved)
    told = till.cra("apply", solved)
    assert told.code == 2
    assert "was discarded" in told.err
    assert money(till) == MONEY


def test_discard_spares_a_branch_with_commits_of_the_users_own(till: Project, solved: str) -> None:
    branch = f"cra/{solved[:8]}"
    tree = git(till.top, "rev-parse", f"{branch}^{{tree}}").strip()
    mine = git(till.top, "commit-tree", tree, "-p", branch, "-m", "mine").strip()
    git(till.top, "update-ref", f"refs/heads/{branch}", mine)
    told = till.cra("discard", solved)
    assert told.code == 2
    assert "git branch -D" in told.err
    assert f"refs/heads/{branch}" in refs(till)


def test_discard_spares_the_branch_that_is_checked_out(till: Project, solved: str) -> None:
    git(till.top, "switch", "-q", f"cra/{solved[:8]}")
    told = till.cra("discard", solved)
    assert told.code == 2
    assert "git switch" in told.err


@pytest.mark.parametrize("command", ["apply", "discard", "replay"])
def test_a_run_that_is_not_there_leads_to_the_list(command: str, till: Project, solved: str) -> None:
    told = till.cra(command, "zzzz")
    assert (told.code, told.out) == (2, "")
    assert "cra runs" in told.err
    assert solved


@pytest.mark.parametrize("command", ["apply", "discard", "replay"])
def test_where_nothing_is_recorded_nothing_is_made(command: str, till: Project) -> None:
    told = till.cra(command, "abcd")
    assert told.code == 2
    assert "nothing has been recorded here yet" in told.err
    assert not Workspace(repo=till.top).folder.exists()


def replayed(till: Project, task_id: str) -> Told:
    before = refs(till)
    told = till.cra("replay", task_id)
    assert refs(till) == before
    assert told.traces == {}
    assert told.sessions == ()
    return told


def test_replay_gives_the_same_bytes_without_a_server(till: Project, solved: str) -> None:
    told = replayed(till, solved)
    assert told.code == 0, told.err
    assert told.out.startswith("the same: ")
    assert "calls answered from the record, complete" in told.out


def test_replay_starts_from_the_recorded_tree_though_the_users_went_on(till: Project, solved: str) -> None:
    (till.top / "till" / "money.py").write_text("gone = True\n")
    git(till.top, "commit", "-q", "-a", "-m", "went on")
    assert replayed(till, solved).code == 0


def test_replay_works_after_discard(till: Project, solved: str) -> None:
    till.cra("discard", solved)
    assert replayed(till, solved).code == 0


def test_replay_says_where_it_first_asks_something_else(till: Project, solved: str) -> None:
    with closing(sqlite3.connect(Workspace(repo=till.top).raw)) as conn, conn:
        (config,) = conn.execute(
            "SELECT config FROM orchestrator_runs WHERE task_id = ?", (solved,)
        ).fetchone()
        changed = json.loads(config)
        changed["models"]["coding"] = "another:1b"
        changed["judgments"] = {**changed.get("judgments", {}), "top_k": 1, "max_symbols": 1}
        for (name,) in conn.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'orchestrator_runs'"
        ).fetchall():
            conn.execute(f"DROP TRIGGER {name}")
        conn.execute(
            "UPDATE orchestrator_runs SET config = ? WHERE task_id = ?", (json.dumps(changed), solved)
        )
    told = replayed(till, solved)
    assert (told.code, told.out) == (1, "")
    assert "asks something else than recorded call" in told.err
    assert "of the prompt was" in told.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_during_the_tests_ends_with_130_and_leaves_only_the_record(
    till: Project, number: signal.Signals
) -> None:
    slow = f"echo begun > {till.home / 'begun'}; sleep 600"
    with serving(till) as server:
        till.configure(server.base_url, testing={"test_command": slow})
        process = subprocess.Popen(
            [sys.executable, "-m", "clean_room_agent", "solve", till.task],
            cwd=till.top,
            env=till.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until((till.home / "begun").exists, "the tests' beginning")
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, "")
    assert "error: interrupted\n  -> go on with: cra solve --resume " in err
    assert refs(till) == [ref for ref in refs(till) if ref.endswith("/base")]
    told = till.cra("runs", "--json")
    assert told.recorded.ending == ("interrupted", "interrupted")
    assert told.worktrees == ()


@pytest.mark.parametrize(("flag", "taken"), [("-v", False), ("-vv", True)])
def test_verbose_shows_each_call_and_then_what_each_pass_took(flag: str, taken: bool, till: Project) -> None:
    with serving(till) as server:
        told = till.solve(server, flag, "--json")
    assert json.loads(told.out)["status"] == "complete"
    assert " implement: coder:3b, " in told.err
    assert ("scope took till/money.py: " in told.err) == taken
    assert " out " not in told.err
    numbers = [line.split()[1] for line in told.err.splitlines() if line.startswith("      call ")]
    assert len(numbers) == len(set(numbers)) == json.loads(told.out)["calls"]
