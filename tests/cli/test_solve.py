"""`cra solve`: its output, its events, how it ends, and what it does on servers of each kind."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from testing.forked import Forked
from testing.patience import wait_until
from testing.repositories import git, read_tree, write
from testing.runs.solving import MENDED_MONEY, TILL, Project, Script, make_project, serving
from testing.servers.openai_server import OpenAiServer

from clean_room_agent.app.resumption import given_to
from clean_room_agent.artifacts.goals import GivenEvidence
from clean_room_agent.db.connection import read_record

WHOLE_SUM = "from till.money import split; assert sum(split(100, 3)) == 100"
KEEPS_CENTS = "tests.test_money.MoneyTest.test_split_keeps_every_cent"


def money(till: Project) -> str:
    return (till.top / "till" / "money.py").read_text()


def refs(till: Project) -> list[str]:
    return git(till.top, "for-each-ref", "--format=%(refname)", "refs/cra", "refs/heads/cra").split()


def test_verbose_shows_each_call_and_events_are_lines_before_the_answer(till: Project) -> None:
    with serving(till) as server:
        told = till.solve(server, "-v", "--json", "--events", "-")
    *events, last = told.out.splitlines()
    answer = json.loads(last)
    assert answer["status"] == "complete"
    assert " implement: coder:3b, " in told.err
    assert "scope took till/money.py: " not in told.err
    assert " out " not in told.err
    numbers = [line.split()[1] for line in told.err.splitlines() if line.startswith("      call ")]
    assert len(numbers) == len(set(numbers)) == answer["calls"]
    assert_events(events)


def test_events_go_to_an_open_file_that_no_test_inherits(till: Project, tmp_path: Path) -> None:
    with (tmp_path / "events").open("w") as file:
        number = os.dup2(file.fileno(), 90)
        code, _, err = till.run_here("solve", "anything", "--events", f"/dev/fd/{number}")
    assert code == 2, err
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)  # the command had it, and closed it


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "nobody reads it"),
        (os.mkdir, "Is a directory"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
    ],
)
def test_events_into_what_is_no_file_are_refused_at_once(
    till: Project, tmp_path: Path, make: Callable[[Path], object], why: str
) -> None:
    make(tmp_path / "events")
    code, _, err = till.run_here("solve", "anything", "--events", str(tmp_path / "events"))
    assert code == 2
    assert why in err


def assert_events(lines: list[str]) -> None:
    """The events are a line of JSON each, from the beginning to the end."""
    names = [json.loads(line)["event"] for line in lines]
    assert (names[0], names[-1]) == ("RunStarted", "RunFinished")
    assert {"PassStarted", "PassFinished", "TestsStarted", "TestsFinished"} <= set(names)


def test_ctrl_c_during_the_tests_ends_with_130_and_leaves_only_the_record(till: Project) -> None:
    slow = f"echo begun > {till.home / 'begun'}; sleep 600"
    with serving(till) as server:
        till.configure(server.base_url, testing={"test_command": slow})
        with Forked(till, "solve", till.task) as process:
            wait_until((till.home / "begun").exists, "the tests' beginning")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert "error: interrupted\n  -> continue with: cra solve --resume " in err
    assert refs(till) == [ref for ref in refs(till) if ref.endswith("/base")]
    told = till.cra("runs", "--json")
    assert told.recorded.ending == ("interrupted", "interrupted")
    assert told.worktrees == ()


CHECK = f"""\
#!/bin/sh
test -f node_modules/left/index.js && test -f .worktree-note/node_modules/a.js && exec {sys.executable} -m unittest -v
"""


def test_a_result_is_applied_at_once_and_untracked_environments_are_linked_as_ignored_ones_are(
    tmp_path: Path,
) -> None:
    project = make_project(
        tmp_path,
        {**TILL, ".worktreeinclude": ".worktree-note/node_modules/\n"},
        test_command="sh .venv/bin/check",
    )
    write(
        project.top,
        {
            ".venv/pyvenv.cfg": "home = /usr\n",
            ".venv/bin/check": CHECK,
            ".venv/lib/six.py": "def split(cents, people):\n    return []\n",
            "node_modules/left/index.js": "module.exports = 1\n",
            ".worktree-note/node_modules/a.js": "1\n",
        },
    )
    events = tmp_path / "events.jsonl"
    told = project.solve_scripted(None, "--apply", "--json", "-vv", "--events", str(events))
    assert told.code == 0, told.err
    assert_events(events.read_text().splitlines())
    assert "scope took till/money.py: " in told.err
    answer = json.loads(told.out)
    assert answer["generated"] == [
        {"path": ".venv", "what": "a Python environment"},
        {"path": ".worktree-note/node_modules", "what": "installed packages"},
        {"path": "node_modules", "what": "installed packages"},
    ]
    assert told.err.count("left out, made by tools and not tracked: .venv/ (a Python environment)") == 1
    assert "nothing uncommitted" in told.err
    assert (answer["carries_uncommitted"], answer["applied"]) == (False, ["till/money.py"])
    assert set(read_tree(project.top, answer["branch"])) == {*TILL, ".worktreeinclude"}
    assert git(project.top, "status", "--porcelain", "till").split() == ["M", "till/money.py"]
    assert money(project) == MENDED_MONEY
    assert [event.detail for event in told.recorded.events if event.kind == "applied"] == ["till/money.py"]
    shown = json.loads(project.cra("show", answer["task_id"], "--json").out)
    assert shown["run"]["generated"] == answer["generated"]
    assert (
        "made by tools: .venv, .worktree-note/node_modules, node_modules"
        in project.cra("show", answer["task_id"]).out
    )


def test_a_task_is_solved_and_a_run_replayed_on_a_server_of_the_other_dialect(till: Project) -> None:
    with OpenAiServer(Script(till.oracle), kind="vllm", window=16_384) as server:
        told = till.solve(server, "--json", models={"provider": "openai"})
        schemas = [call.schema for call in server.calls]
    assert told.code == 0, told.err
    done = json.loads(told.out)
    assert (done["status"], told.traces) == ("complete", {})
    assert {call.model.provider for call in told.recorded.calls} == {"openai"}
    assert any(schemas)
    assert any(call.cost.prompt_tokens for call in told.recorded.calls)
    assert till.cra("replay", done["task_id"]).code == 0
    shown = till.cra("show", done["task_id"], "--budget")
    assert (shown.code, "16,384" in shown.out) == (0, True)


def test_only_files_that_the_user_names_are_changed_and_all_that_was_given_is_on_record(
    till: Project,
) -> None:
    given = ("--file", "till/receipt.py", "--check", WHOLE_SUM, "--test", KEEPS_CENTS)
    with serving(till) as server:
        told = till.solve(server, *given, solve={"max_attempts": 1, "max_refinement_loops": 0})
    assert told.code in {1, 4}, told.err
    assert money(till) == TILL["till/money.py"]
    assert not [
        path for attempt in told.recorded.attempts for path in attempt.diff.split() if "money" in path
    ]
    assert told.recorded.run is not None
    run = told.recorded.run.task_id
    with read_record(till.top) as conn:
        assert given_to(conn, run).evidence == GivenEvidence(
            files=("till/receipt.py",), checks=(WHOLE_SUM,), tests=(KEEPS_CENTS,)
        )
    again = till.cra("solve", "--resume", run[:8], "--check", "assert 1")
    assert (again.code, again.out) == (2, "")
    assert "leave out" in again.err


def test_a_file_that_does_not_exist_is_refused_before_anything_begins(till: Project) -> None:
    till.configure("http://127.0.0.1:1")
    told = till.cra("solve", till.task, "--file", "money.py")
    assert told.code == 2
    assert "--file money.py: there is no such file" in told.err
    assert "did you mean till/money.py?" in told.err
    assert told.recorded.run is None


@pytest.mark.parametrize("command", ["solve", "plan", "retrieve"])
def test_a_task_that_leaves_no_space_is_to_be_shortened_and_is_not_printed(
    till: Project, command: str
) -> None:
    with serving(till) as server:
        till.configure(server.base_url)
        code, out, err = till.run_here(command, "Splitting a bill loses cents. " * 4000)
        assert server.calls == []
    assert (code, out) == (3, "")
    assert "error: the task alone has about" in err
    assert "-> shorten it" in err
    assert len(err) < 1000
