"""Refs are written under their own name, and nowhere else."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from testing.repositories import commit_change, fingerprint, git

from clean_room_agent.errors import GitError, RepositoryError
from clean_room_agent.git.refs import (
    branch_tip,
    create_branch,
    delete_branch,
    delete_ref,
    land,
    list_refs,
    refuse_linked,
    sync_commit,
    update_ref,
    with_package,
    write_ref,
)
from clean_room_agent.git.repository import Repository

REF = "refs/cra/task/head"


def test_a_ref_moves_from_its_expected_value_alone(repo: Repository) -> None:
    second = commit_change(repo, {"a.py": b"new\n"})
    sync_commit(repo, second)
    write_ref(repo, REF, repo.head, repo.zero)
    write_ref(repo, REF, second, repo.head)
    assert git(repo.top, "rev-parse", REF) == second
    with pytest.raises(GitError):
        write_ref(repo, REF, repo.head, repo.head)
    assert git(repo.top, "rev-parse", REF) == second


@pytest.mark.parametrize("name", ["refs/cra", "logs/refs/cra"])
def test_a_link_on_the_way_is_refused(repo: Repository, name: str) -> None:
    link = repo.common_dir / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(repo.common_dir / "refs/heads")
    with pytest.raises(RepositoryError, match="is a link"):
        refuse_linked(repo, REF)


def test_refs_move_by_compare_and_swap_only(repo: Repository) -> None:
    second = commit_change(repo, {"a.py": b"x"})
    update_ref(repo, "refs/cra/t1/head", repo.head, expected="")
    with pytest.raises(GitError):
        update_ref(repo, "refs/cra/t1/head", second, expected="")
    with pytest.raises(GitError):
        update_ref(repo, "refs/cra/t1/head", second, expected=second)
    update_ref(repo, "refs/cra/t1/head", second, expected=repo.head)
    update_ref(repo, "refs/cra/t10/head", second, expected="")
    assert list_refs(repo, "refs/cra/t1") == {"refs/cra/t1/head": second}
    delete_ref(repo, "refs/cra/t1/head")
    delete_ref(repo, "refs/cra/t1/head")
    assert list_refs(repo, "refs/cra/t1") == {}


def test_a_branch_where_results_would_stand_is_told_beforehand(repo: Repository) -> None:
    git(repo.top, "branch", "cra/old")
    assert with_package(repo, "cra") == repo
    git(repo.top, "branch", "-m", "cra/old", "cra")
    with pytest.raises(RepositoryError, match="a branch named cra") as caught:
        with_package(repo, "cra")
    assert "git branch -m cra" in caught.value.hint


@pytest.mark.parametrize(
    "link",
    [
        *("refs/cra", "refs/heads/cra", "logs/refs/cra", "refs/cra/t1", "refs/heads"),
        *("refs", "logs", "logs/refs"),
    ],
)
def test_no_ref_is_written_by_way_of_a_link(repo: Repository, link: str) -> None:
    path = repo.common_dir / link
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        path.rename(path.with_name("tips"))
        path.symlink_to("tips")
    else:
        # Not a folder around it: how deep git lists refs below a link to itself differs from time to time.
        path.symlink_to(repo.common_dir / "refs/tags")
    made = commit_change(repo, {"a.py": b"x"})
    before = fingerprint(repo.top)
    name = "refs/heads/cra/main" if "heads" in link else "refs/cra/t1/main"
    writes: tuple[Callable[[], None], ...] = (
        lambda: update_ref(repo, name, made, expected=""),
        lambda: update_ref(repo, name, made, expected=repo.head),
        lambda: delete_ref(repo, name),
    )
    for write in writes:
        with pytest.raises(RepositoryError, match="is a link"):
            write()
    assert fingerprint(repo.top) == before


def test_a_ref_is_on_the_disk_whatever_the_configuration_says(repo: Repository, tmp_path: Path) -> None:
    git(repo.top, "config", "core.fsyncMethod", "writeout-only")
    trace = tmp_path / "trace"
    pins = {"GIT_TRACE2_EVENT": str(trace)}
    repo.git("update-ref", "--", "refs/cra/t1/x", repo.head, repo.zero, pins=pins)
    events = [json.loads(line) for line in trace.read_text().splitlines()]
    flushed = {one["key"]: int(one["value"]) for one in events if one.get("category") == "fsync"}
    if not flushed:
        pytest.skip("this git does not tell")
    assert flushed.get("fsync/hardware-flush", 0) > 0
    assert flushed.get("fsync/writeout-only", 0) == 0


NAME = "cra/1234"


@pytest.fixture
def tip(repo: Repository) -> str:
    """The commit of a branch that no worktree uses."""
    made = commit_change(repo, {"a.py": b"theirs\n"})
    create_branch(repo, NAME, made)
    return made


def test_a_branch_is_new_or_refused(repo: Repository) -> None:
    before = fingerprint(repo.top, refs=("refs/cra/", "refs/heads/cra/"))
    made = commit_change(repo, {"a.py": b"x"})
    create_branch(repo, NAME, made)
    assert git(repo.top, "rev-parse", NAME) == made
    assert fingerprint(repo.top, refs=("refs/cra/", "refs/heads/cra/")) == before
    for name in (NAME, "cra", "bad..name", "main"):
        with pytest.raises(RepositoryError):
            create_branch(repo, name, repo.head)
    assert git(repo.top, "rev-parse", NAME) == made


def here(top: Path, _: Path) -> None:
    git(top, "checkout", "-q", NAME)


def elsewhere(top: Path, other: Path) -> None:
    git(top, "worktree", "add", "-q", str(other), NAME)


def missing(top: Path, other: Path) -> None:
    elsewhere(top, other)
    shutil.rmtree(other)


USES: dict[Callable[[Path, Path], None], tuple[str, str]] = {
    here: ("checked out in", "switch --detach"),
    elsewhere: ("checked out in", "switch --detach"),
    missing: ("folder is missing", "worktree prune"),
}


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_a_branch_that_a_worktree_uses_is_neither_deleted_nor_moved(
    repo: Repository, tip: str, tmp_path: Path, use: Callable[[Path, Path], None]
) -> None:
    use(repo.top, tmp_path / "it's other")
    words, remedy = USES[use]
    with pytest.raises(RepositoryError, match=words) as caught:
        delete_branch(repo, NAME, tip)
    assert remedy in caught.value.hint
    assert branch_tip(repo, NAME) == tip
    newer = commit_change(repo, {"a.py": b"newer\n"})
    assert land(repo, NAME, newer, before=(NAME, tip)) == f"{NAME}-2"
    assert branch_tip(repo, NAME) == tip


def test_a_branch_that_nothing_uses_is_deleted_once(repo: Repository, tip: str, tmp_path: Path) -> None:
    git(repo.top, "worktree", "add", "-q", "--detach", str(tmp_path / "other"), NAME)
    delete_branch(repo, NAME, tip)
    assert branch_tip(repo, NAME) == ""
    delete_branch(repo, NAME, tip)


def test_a_branch_that_has_moved_stays(repo: Repository, tip: str) -> None:
    with pytest.raises(RepositoryError, match="commits of yours"):
        delete_branch(repo, NAME, repo.head)
    assert branch_tip(repo, NAME) == tip


def test_a_branch_that_is_locked_stays_and_is_not_said_to_have_moved(repo: Repository, tip: str) -> None:
    (repo.common_dir / f"refs/heads/{NAME}.lock").touch()
    with pytest.raises(GitError, match=r"lock': File exists") as caught:
        delete_branch(repo, NAME, tip)
    assert "if none is running, remove the file" in caught.value.hint
    assert branch_tip(repo, NAME) == tip
