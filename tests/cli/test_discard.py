"""`cra discard`, and what it shares with `cra apply` and `cra replay`."""

from collections.abc import Callable
from pathlib import Path

import pytest
from testing.repositories import commit_change, git, make_repository
from testing.runs.solving import Project
from tests.db.raw.samples import TASK, run

from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.leftovers import task_lock
from clean_room_agent.artifacts.outcomes import EventKind, RunStatus
from clean_room_agent.cli.discard import discard_run
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import RunOutcome, append_orchestrator_run, list_events, set_outcome
from clean_room_agent.errors import UsageError
from clean_room_agent.git.repository import open_repository
from clean_room_agent.workspace import Workspace

BRANCH = "cra/3f0c8a52"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    top = make_repository(tmp_path / "repo", {"a.py": "1\n"})
    workspace = Workspace(repo=top)
    workspace.create()
    result = commit_change(open_repository(top), {"a.py": b"2\n"})
    git(top, "branch", BRANCH, result)
    git(top, "update-ref", f"refs/cra/{TASK}/head", result)
    with Record.open(top, clock=utc_now) as record:
        row_id = record.write(append_orchestrator_run, run())
        outcome = RunOutcome(
            status=RunStatus.COMPLETE, completed_at=utc_now(), branch=BRANCH, result_commit=result
        )
        record.write(set_outcome, row_id, outcome)
    return workspace


def test_branch_and_refs_go_and_the_record_knows(workspace: Workspace) -> None:
    task_id, gone = discard_run(workspace, TASK[:8])
    assert (task_id, sorted(gone)) == (TASK, [f"refs/cra/{TASK}/head", f"refs/heads/{BRANCH}"])
    assert git(workspace.repo, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    with Record.open(workspace.repo, clock=utc_now) as record:
        kinds = [event.kind for event in record.write(list_events, TASK)]
    assert kinds == [EventKind.DISCARDED]


def check_out(top: Path) -> None:
    git(top, "checkout", "-q", BRANCH)


def check_out_elsewhere(top: Path) -> None:
    git(top, "worktree", "add", "-q", str(top.parent / "other"), BRANCH)


def commit_on_top(top: Path) -> None:
    git(top, "branch", "-f", BRANCH, commit_change(open_repository(top), {"a.py": b"3\n"}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (check_out, "is checked out"),
        (check_out_elsewhere, "is checked out in .*other"),
        (commit_on_top, "commits of yours"),
    ],
)
def test_a_branch_that_the_user_works_on_stays(
    workspace: Workspace, change: Callable[[Path], None], words: str
) -> None:
    change(workspace.repo)
    with pytest.raises(UsageError, match=words):
        discard_run(workspace, "@")
    refs = git(workspace.repo, "for-each-ref", "--format=%(refname)")
    assert f"refs/heads/{BRANCH}" in refs
    assert f"refs/cra/{TASK}/head" in refs


def test_branches_of_the_user_below_the_name_of_a_deleted_one_stay(workspace: Workspace) -> None:
    git(workspace.repo, "branch", "-D", BRANCH)
    git(workspace.repo, "branch", f"{BRANCH}/mine")
    discard_run(workspace, "@")
    assert git(workspace.repo, "branch", "--list", f"{BRANCH}/mine")


def test_a_run_in_progress_is_not_discarded(workspace: Workspace) -> None:
    with task_lock(workspace, TASK), pytest.raises(UsageError, match="holds run"):
        discard_run(workspace, "@")
    assert git(workspace.repo, "branch", "--list", BRANCH)


def refs(till: Project) -> list[str]:
    return git(till.top, "for-each-ref", "--format=%(refname)", "refs/cra", "refs/heads/cra").split()


def test_discard_leaves_the_record_alone(till: Project, solved: str) -> None:
    assert refs(till)
    told = till.cra("discard", solved[:8])
    assert told.code == 0
    assert f"deleted refs/heads/cra/{solved[:8]}" in told.out
    assert refs(till) == []
    assert told.recorded.run is not None
    assert told.traces == {}
    assert till.cra("discard", "@").out == f"git has nothing of run {solved[:8]}\n"
    assert f"run {solved[:8]} was discarded" in till.cra("apply", "@").err


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
