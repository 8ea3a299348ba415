import json
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from testing.forked import Forked
from testing.record_faults import record_faults
from testing.repositories import commit_change, copy_repository, git, make_repository
from testing.runs.solving import Project, Script, make_project, serving
from testing.servers.ollama_script import Answer, ChatCall
from tests.db.raw.samples import run as sample_run

from clean_room_agent.app.clock import utc_now
from clean_room_agent.cli import prune
from clean_room_agent.cli.prune import Leftover, PrunedRun, PruningPlan, Site, as_object, carry_out, verdict
from clean_room_agent.db.connection import read_record
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import append_orchestrator_run, list_overviews
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.folders import FRESH
from clean_room_agent.git.repository import open_repository
from clean_room_agent.workspace import Workspace, hold

EMPTY = PruningPlan(runs=(), leftovers=())
SOME = PruningPlan(runs=(), leftovers=(Leftover(path="/tmp/cra-1", size=2048, worktree=False),))


def test_nothing_is_deleted_without_yes() -> None:
    assert verdict(EMPTY, done=False).startswith("nothing to delete")
    assert verdict(SOME, done=False).startswith("nothing was deleted; 2")
    assert verdict(SOME, done=False).endswith("would be deleted with --yes")
    assert verdict(SOME, done=True).endswith(" deleted")


def test_the_object_says_whether_it_was_done() -> None:
    told = as_object(SOME, ("kept one",), done=False)
    assert (told["done"], told["bytes"], told["notes"]) == (False, 2048, ("kept one",))


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of the test's own."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def asked(project: Project, *flags: str) -> dict[str, Any]:
    code, out, err = project.run_here("prune", "--json", *flags)
    assert code == 0, err
    answer: dict[str, object] = json.loads(out)
    return answer


def ids(project: Project) -> list[str]:
    code, out, err = project.run_here("runs", "--json")
    assert code == 0, err
    return [run["task_id"] for run in json.loads(out)]


def refs(project: Project) -> list[str]:
    return git(project.top, "for-each-ref", "--format=%(refname)", "refs/cra/").split()


def faults(project: Project) -> tuple[str, ...]:
    with read_record(project.top) as conn:
        return record_faults(conn)


@pytest.fixture(scope="module")
def interrupted_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A repository with a run that stopped in the middle and can go on, and the run's id."""
    project = make_project(tmp_path_factory.mktemp("interrupted"))

    class Leaving(Script):
        def __call__(self, call: ChatCall) -> Answer | str:
            answer = super().__call__(call)
            if call.title == IMPLEMENT.title:
                os.kill(os.getpid(), signal.SIGINT)
            return answer

    with serving(project, Leaving(project.oracle)) as server:
        told = project.solve(server)
    assert told.code == 130, told.err
    return project.top, ids(project)[0]


@pytest.fixture
def interrupted(till: Project, interrupted_once: tuple[Path, str]) -> str:
    """The id of such a run of `till`, a copy of one made elsewhere."""
    made, task_id = interrupted_once
    shutil.rmtree(till.top)
    copy_repository(made, till.top)
    return task_id


def test_nothing_goes_without_yes_and_nothing_of_runs_unless_chosen(till: Project, solved: str) -> None:
    before = (ids(till), refs(till))
    assert asked(till)["runs"] == []
    assert asked(till, "--yes")["runs"] == []
    (run,) = asked(till, "--older-than", "0d")["runs"]
    assert run["task_id"] == solved
    assert run["bytes"] > 10_000
    assert (ids(till), refs(till)) == before
    code, out, _ = till.run_here("prune", "--status", "complete")
    assert code == 0
    assert "nothing was deleted" in out


def test_a_pruned_run_is_gone_from_every_view(till: Project, solved: str) -> None:
    size = Workspace(repo=till.top).raw.stat().st_size
    (branch,) = git(till.top, "for-each-ref", "--format=%(refname:short)", "refs/heads/cra/").split()
    report = Path(till.run_here("report", solved)[1].strip())
    assert report.exists()
    assert asked(till, "--status", "complete", "--yes")["done"] is True
    assert not report.exists()
    assert ids(till) == []
    assert refs(till) == []
    assert faults(till) == ()
    assert Workspace(repo=till.top).raw.stat().st_size < size
    assert till.run_here("show", solved)[0] == 2
    assert till.run_here("stats", "--json")[0] == 0
    assert git(till.top, "rev-parse", branch), "a result that is not merged stays"
    code, out, _ = till.run_here("prune", "--status", "complete", "--yes")
    assert code == 0
    assert "nothing to delete" in out


def test_a_merged_branch_goes_with_its_run(till: Project, solved: str) -> None:
    git(till.top, "merge", "-q", f"cra/{solved[:8]}")
    asked(till, "--older-than", "0h", "--yes")
    assert git(till.top, "for-each-ref", "refs/heads/cra/") == ""


def test_one_that_can_be_resumed_goes_only_where_its_status_is_named(till: Project, interrupted: str) -> None:
    workspace, task_id = Workspace(repo=till.top), interrupted
    told = asked(till, "--older-than", "0d", "--yes")
    assert told["runs"] == []
    assert "can be resumed" in str(told["notes"])
    assert workspace.session(task_id).exists()
    assert len(asked(till, "--status", "interrupted", "--yes")["runs"]) == 1
    assert not workspace.session(task_id).exists()
    assert ids(till) == []


def test_a_run_under_way_is_let_be(till: Project, interrupted: str) -> None:
    with hold(Workspace(repo=till.top).task_lock(interrupted)):
        told = asked(till, "--status", "interrupted", "--yes")
    assert told["runs"] == []
    assert told["notes"] == ["1 run is in progress: kept"]
    assert ids(till) == [interrupted]
    assert Workspace(repo=till.top).session(interrupted).exists()


@pytest.mark.parametrize("step", ["delete_refs", "delete_tasks", "compact_record"])
def test_killed_at_any_step_the_record_tells_the_run_whole_or_not_at_all(
    till: Project, solved: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(prune, step, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        with Forked(till, "prune", "--older-than", "0d", "--yes") as done:
            _, err = done.communicate()
    assert done.returncode == -signal.SIGKILL, err
    assert faults(till) == ()
    assert ids(till) == ([] if step == "compact_record" else [solved])
    if step != "compact_record":
        code, out, _ = till.run_here("show", solved)
        assert code == 0
        assert "pruned" in out
    asked(till, "--older-than", "0d", "--yes")
    assert (ids(till), refs(till), faults(till)) == ([], [], ())


def test_what_killed_processes_left_goes_without_being_chosen(
    till: Project, solved: str, scratch: Path
) -> None:
    left = scratch / "cra-index-abcdefgh"
    left.mkdir()
    (left / "index").write_bytes(b"x" * 1000)
    old = time.time() - 2 * FRESH
    os.utime(left, (old, old))
    gone = till.home / "cache" / "cra" / "worktrees" / "other-00000000"
    (gone / "12345678").mkdir(parents=True)
    (gone / "12345678" / ".git").write_text(f"gitdir: {till.home}/nowhere/.git/worktrees/12345678\n")
    os.utime(gone, (old, old))
    told = asked(till)
    assert [each["path"] for each in told["leftovers"]] == [str(gone), str(left)]
    assert left.exists()
    asked(till, "--yes")
    assert not left.exists()
    assert not gone.exists()
    assert ids(till) == [solved]


def test_a_work_tree_of_a_repository_that_stands_is_not_orphaned(till: Project, solved: str) -> None:
    other = till.home / "cache" / "cra" / "worktrees" / "other-00000000" / "12345678"
    other.mkdir(parents=True)
    (till.home / "there" / ".git").mkdir(parents=True)
    (other / ".git").write_text(f"gitdir: {till.home}/there/.git/worktrees/12345678\n")
    os.utime(other.parent, (0, 0))
    assert asked(till)["leftovers"] == []
    shutil.rmtree(till.home / "there")
    assert len(asked(till)["leftovers"]) == 1


@pytest.mark.parametrize("wrong", ["30", "d", "-1d", "1y"])
def test_an_age_is_a_number_and_a_unit(till: Project, wrong: str) -> None:
    code, _, err = till.run_here("prune", f"--older-than={wrong}")
    assert code == 2
    assert "12h, 30d or 2w" in err


@pytest.mark.parametrize("used", [True, False])
def test_a_branch_that_was_checked_out_since_is_kept(tmp_path: Path, used: bool) -> None:
    top = make_repository(tmp_path / "repo", {"a.py": "1\n"})
    repo, workspace = open_repository(top), Workspace(repo=top)
    workspace.create()
    tip = commit_change(repo, {"a.py": b"2\n"})
    branch = "cra/3f0c8a52"
    git(top, "branch", branch, tip)
    with Record.open(top, clock=utc_now) as record:
        record.write(append_orchestrator_run, sample_run())
    if used:
        git(top, "worktree", "add", "-q", str(tmp_path / "other"), branch)
    with read_record(top) as conn:
        (overview,) = list_overviews(conn, limit=1)
    overview = replace(overview, result_commit=tip)
    pruned = PrunedRun(of=overview, status="complete", size=1, branch=branch)
    site = Site(workspace=workspace, repo=repo, worktrees=tmp_path / "none", cache=tmp_path)
    notes = carry_out(site, PruningPlan(runs=(pruned,), leftovers=()))
    assert any("checked out in" in note for note in notes) is used
    assert bool(git(top, "branch", "--list", branch)) is used
