"""What is in use by the time of the deletion is kept, and said."""

from pathlib import Path

import pytest
from testing.repositories import commit_change, git, make_repository
from tests.db.raw.samples import TASK, run

from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.pruning import Piece, Plan, PrunedRun, Site, carry_out
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import append_orchestrator_run
from clean_room_agent.git.repository import open_repository
from clean_room_agent.workspace import Workspace

BRANCH = "cra/3f0c8a52"


@pytest.mark.parametrize("used", [True, False])
def test_a_branch_that_was_checked_out_since_is_kept(tmp_path: Path, used: bool) -> None:
    top = make_repository(tmp_path / "repo", {"a.py": "1\n"})
    repo, workspace = open_repository(top), Workspace(repo=top)
    workspace.create()
    tip = commit_change(repo, {"a.py": b"2\n"})
    git(top, "branch", BRANCH, tip)
    with Record.open(top, clock=utc_now) as record:
        record.write(append_orchestrator_run, run())
    if used:
        git(top, "worktree", "add", "-q", str(tmp_path / "other"), BRANCH)
    pruned = PrunedRun(
        task_id=TASK,
        command="solve",
        status="complete",
        timestamp=utc_now(),
        task_description="x",
        pieces=(Piece(kind="branches", name=f"refs/heads/{BRANCH}", tip=tip),),
    )
    site = Site(workspace=workspace, repo=repo, worktrees=tmp_path / "none", cache=tmp_path)
    notes = carry_out(site, Plan(runs=(pruned,), others=(), sizes=(), notes=()))
    assert any("checked out in" in note for note in notes) is used
    assert bool(git(top, "branch", "--list", BRANCH)) is used
