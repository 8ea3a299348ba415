"""Runs that were interrupted go on: with what they had, and with what the user says since."""

import contextlib
import json
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import Struct, field
from testing import repositories
from testing.forked import Forked
from testing.patience import wait_until
from testing.runs.long_run import newest_run
from testing.runs.solving import MENDED_MONEY, PROBE, Project, Script, Told, make_project, serving
from testing.servers.ollama_script import Answer, Answerer, ChatCall
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.app.leftovers import task_lock
from clean_room_agent.artifacts.names import new_task_id
from clean_room_agent.errors import UsageError
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.workspace import Workspace

DEAD = Answer(status=500, error="llama runner process has unexpectedly stopped")
Fault = Callable[[ChatCall], Answer | None]


class Faulty(Struct):
    """A model's mind, with one fault at the n-th question (from 1) that asks for edits."""

    mind: Answerer
    fault: Fault
    nth: int
    asked: list[ChatCall] = field(default_factory=list)

    def __call__(self, call: ChatCall) -> Answer | str:
        if not call.prompt.startswith(PROBE):
            self.asked.append(call)
        if (
            call.title == IMPLEMENT.title
            and [each.title for each in self.asked].count(IMPLEMENT.title) == self.nth
        ):
            found = self.fault(call)
            if found is not None:
                return found
        return self.mind(call)


def press(_: ChatCall) -> None:
    """Ctrl-C while the model writes."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def dead(_: ChatCall) -> Answer:
    return DEAD


def configured(project: Project, server: OllamaServer, **tables: dict[str, object]) -> None:
    project.configure(server.base_url, **{"models": {"parallel": 1}, **tables})  # type: ignore[arg-type]


def run_of(told: Told) -> str:
    assert told.recorded.run is not None
    return told.recorded.run.task_id


class BrokenOff(Struct, frozen=True, kw_only=True):
    """A run that met its fault, and what `cra solve` told then."""

    project: Project
    mind: Faulty
    server: OllamaServer
    told: Told

    @property
    def short(self) -> str:
        return run_of(self.told)[:8]

    def resume(self, *more: str) -> Told:
        return self.project.cra("solve", "--resume", self.short, *more)


@contextlib.contextmanager
def broken_off(
    till: Project, fault: Fault, nth: int, *flags: str, **tables: dict[str, object]
) -> Iterator[BrokenOff]:
    """The server answers as long as this is open, from here on without a fault."""
    faulty = Faulty(Script(till.oracle), fault, nth)
    with OllamaServer(faulty) as server:
        configured(till, server, **tables)
        told = till.cra("solve", till.task, *flags)
        yield BrokenOff(project=till, mind=faulty, server=server, told=told)


def check_complete(run: BrokenOff, told: Told) -> None:
    assert (told.code, told.traces, told.sessions) == (0, {}, ()), told.err
    assert told.branches == (f"cra/{run.short}",)
    assert told.recorded.ending == ("complete", "")
    assert run.project.branch_file("till/money.py") == MENDED_MONEY.encode()
    assert list(Workspace(repo=run.project.top).sessions.iterdir()) == []


def test_ctrl_c_says_how_to_go_on_also_where_the_copy_of_the_index_is_lost(till: Project) -> None:
    """That what follows is as if it had not been, in a run in which much happens, is in `test_killed.py`."""
    with broken_off(till, press, 1) as run:
        assert (run.told.code, run.told.traces, run.told.branches) == (130, {}, ())
        assert (
            f"error: interrupted\n  -> continue with: cra solve --resume {run.short} --repo " in run.told.err
        )
        copy = Workspace(repo=till.top).run_copy(run_of(run.told))
        assert copy.exists()
        copy.write_bytes(b"x" * 9000)
        repositories.commit(till.top, {"till/later.py": "LATER = 1\n"}, "Something else meanwhile")
        asked = len(run.mind.asked)
        told = run.resume()
        check_complete(run, told)
        assert [call.title for call in run.mind.asked[asked:]] == [IMPLEMENT.title]
        assert f"note: resuming {run.short}: finished work is kept" in told.err
        again = run.resume()
    assert (again.code, again.traces) == (2, {})
    assert f"run {run.short} is complete: there is nothing to resume" in again.err


def test_a_server_that_died_is_asked_again(till: Project) -> None:
    with broken_off(till, dead, 1) as run:
        assert (run.told.code, run.told.recorded.ending[0]) == (3, "failed")
        assert f"cra solve --resume {run.short}" in run.told.err
        check_complete(run, run.resume())


def test_a_spent_budget_that_is_raised_goes_on_and_counts_what_was_spent(till: Project) -> None:
    with broken_off(till, dead, 0, orchestrator={"max_calls": 4}) as run:
        assert (run.told.code, run.told.traces, run.told.branches) == (4, {}, ())
        status, reason = run.told.recorded.ending
        assert (status, reason in run.told.out) == ("partial", True)
        configured(run.project, run.server)
        told = run.resume("--json")
    assert told.recorded.ending == ("complete", ""), told.err
    assert "changed since, and applies from here on: [orchestrator] max_calls: was 4, is 400" in told.err
    assert json.loads(told.out)["calls"] == len(told.recorded.calls) + len(told.recorded.probes)
    assert len(told.recorded.calls) == len(run.mind.asked)
    assert len(told.recorded.calls) > 4


def test_another_test_command_is_refused_and_a_hint_is_on_record_and_in_every_prompt_from_then_on(
    till: Project,
) -> None:
    with broken_off(till, press, 1, "--max-attempts", "2") as run:
        configured(till, run.server, testing={"test_command": "true"})
        refused = run.resume()
        configured(till, run.server)
        assert (refused.code, refused.traces) == (2, {})
        assert "what is done was judged by the old value" in refused.err
        assert refused.recorded.ending[0] == "interrupted"
        assert "leave out TASK" in run.project.run_here("solve", "again", "--resume", run.short)[2]
        assert "no task begins with 'zz'" in run.project.run_here("solve", "--resume", "zz")[2]
        asked = len(run.mind.asked)
        told = run.resume("--hint", "Mind the cents.")
        assert told.code == 0, told.err
        shown = ["The user has added since: Mind the cents." in call.prompt for call in run.mind.asked]
        assert not any(shown[:asked])
        assert all(
            hinted
            for hinted, call in zip(shown[asked:], run.mind.asked[asked:], strict=True)
            if "## Task" in call.prompt
        )
        assert any(shown[asked:])
        replayed = run.project.run_here("replay", run.short)
        assert replayed[0] == 0, replayed[2]
        noted = {event.kind: event.detail for event in told.recorded.events}
        assert noted["hint"] == "Mind the cents."
        assert json.loads(noted["flags"]) == {"max_attempts": 2}
        assert noted["resumed"] == "with the same configuration"
        assert json.loads(noted["resumed_with"])["config"]["solve"]["max_attempts"] == 2
        shown_run = run.project.run_here("show", run.short)[1]
        assert "  resumed: with the same configuration\n" in shown_run
        assert "resumed_with" not in shown_run


def test_what_does_not_go_with_resume_is_refused(till: Project) -> None:
    with serving(till) as server:
        configured(till, server)
        assert "--hint needs --resume" in till.cra("solve", "x", "--hint", "y").err
        assert "nothing has been recorded here yet" in till.cra("solve", "--resume", "abcd").err


def test_a_run_that_somebody_has_in_hand_is_refused_and_not_put_away(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    slow = f"touch {project.home}/begun; sleep 600"
    with serving(project) as server:
        project.configure(server.base_url, testing={"test_command": slow})
        with Forked(project, "solve", project.task) as process:
            wait_until((project.home / "begun").exists, "the tests' beginning")
            row = newest_run(project)
            assert row is not None
            short = row.task_id[:8]
            told = project.cra("solve", "--resume", short)
            assert (told.code, told.recorded.ending[0]) == (2, "running")
            assert f"process {process.pid} holds run {short}" in told.err
            repaired = project.cra("check", "--repair")
            assert repaired.out == "nothing to clean up\n"
            assert any(short in path for path in repaired.worktrees)
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert json.loads(project.cra("runs", "--json").out)[0]["status"] == "interrupted"
        theirs = tmp_path / "theirs"
        repositories.git(
            project.top, "worktree", "add", "-q", "--lock", "--reason", "cra is nice", str(theirs)
        )
        repaired = project.cra("check", "--repair")
    assert f"run {short} was interrupted: its process died; continue with: cra solve --resume {short}" in (
        repaired.out
    )
    assert "removed the worktree" in repaired.out
    assert repaired.worktrees == (str(theirs),)
    assert repaired.recorded.ending[0] == "interrupted"
    assert project.cra("check", "--repair").out == "nothing to clean up\n"


def test_one_process_has_a_task_in_hand(tmp_path: Path) -> None:
    workspace, task = Workspace(repo=tmp_path), new_task_id()
    with task_lock(workspace, task):
        second = task_lock(workspace, task, patience=0)
        with pytest.raises(UsageError, match="holds run"):
            second.__enter__()
    assert list(workspace.sessions.iterdir()) == []
