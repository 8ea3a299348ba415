"""A run whose step creates a file, as a command: what it shows and leaves, and that a killed one goes on and replays. What becomes
of declarations is said in tests/orchestrator/steps/test_scaffolded_steps.py.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from testing.patience import PATIENCE
from testing.repositories import git
from testing.runs.bills import ALWAYS, BILLS, BILLS_PATH, STUBS, bills_project, events_of
from testing.runs.solving import Project, Script, Told
from testing.servers.ollama_script import Answer, ChatCall
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.execute.prompts.implement import IMPLEMENT
from clean_room_agent.execute.prompts.scaffold import SCAFFOLD

MADE = "it creates till/bills.py; it parses and imports; stubs: " + ", ".join(
    f"{BILLS_PATH}::{symbol}" for symbol in STUBS
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return bills_project(tmp_path)


def check_solved(project: Project, told: Told) -> None:
    assert (told.code, told.recorded.ending, told.traces) == (0, ("complete", ""), {}), told.err
    assert project.branch_file(BILLS_PATH).decode() == BILLS


def test_declarations_and_bodies_are_one_commit_and_both_are_shown(project: Project) -> None:
    told = project.solve_scripted(solve=ALWAYS)
    check_solved(project, told)
    assert events_of(told) == [("scaffold", MADE)]
    (branch,) = told.branches
    assert git(project.top, "rev-list", "--count", f"HEAD..{branch}").strip() == "1"
    assert f"scaffold: {MADE}" in project.run_here("show")[1]
    one = project.run_here("show", "@/p1/s1/1")[1]
    assert f"scaffold: {MADE}" in one
    assert " scaffold " in one
    assert SCAFFOLD.title in project.run_here("show", "@/p1/s1/1", "--prompt")[1]


def test_a_run_that_is_killed_after_its_declarations_goes_on_declares_nothing_twice_and_replays(
    project: Project,
) -> None:
    script, children = Script(project.oracle), list[subprocess.Popen[bytes]]()

    def kill_once(call: ChatCall) -> Answer | str:
        if call.title == IMPLEMENT.title and children:
            child = children.pop()
            child.kill()
            child.wait()
        return script(call)

    with OllamaServer(kill_once) as server:
        project.configure(server.base_url, solve=ALWAYS)
        command = (sys.executable, "-m", "clean_room_agent", "solve", project.task)
        quiet = subprocess.DEVNULL
        child = subprocess.Popen(
            command, cwd=project.top, env=project.environment(), stdout=quiet, stderr=quiet
        )
        children.append(child)
        assert child.wait(PATIENCE) == -signal.SIGKILL
        run = project.recorded().run
        assert run is not None
        told = project.cra("solve", "--resume", run.task_id[:8])
    check_solved(project, told)
    assert [call.answer.response != "" for call in told.recorded.calls_of("scaffold")] == [True]
    assert told.recorded.outcomes == ["applied_and_passed"]
    assert events_of(told) == [("scaffold", MADE)]
    assert project.run_here("replay", run.task_id[:8])[0] == 0
