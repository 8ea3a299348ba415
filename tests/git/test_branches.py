"""A branch of a result is created, moved and deleted only where no worktree uses it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from testing.repositories import commit_change, fingerprint, git

from clean_room_agent.errors import CommandError, GitError, RepositoryError
from clean_room_agent.git.branches import branch_tip, branch_use, create_branch, delete_branch, land
from clean_room_agent.git.repository import Repository, open_repository

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


def rebased(top: Path, other: Path, *flags: str) -> None:
    elsewhere(top, other)
    mine = commit_change(open_repository(top), {"a.py": b"mine\n"})
    with pytest.raises(CommandError, match=r"could not apply|Failed to merge"):
        git(other, "rebase", *flags, mine)


def rebased_by_patches(top: Path, other: Path) -> None:
    rebased(top, other, "--apply")


def bisected(top: Path, other: Path) -> None:
    elsewhere(top, other)
    git(other, "bisect", "start")
    git(other, "checkout", "-q", "--detach", "HEAD~1")


USES: dict[Callable[[Path, Path], None], tuple[str, str]] = {
    here: ("checked out in", "switch --detach"),
    elsewhere: ("checked out in", "switch --detach"),
    missing: ("folder is missing", "worktree prune"),
    rebased: ("being rebased in", "rebase --abort"),
    rebased_by_patches: ("being rebased in", "rebase --abort"),
    bisected: ("being bisected in", "bisect reset"),
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


def test_a_rebase_that_takes_the_branch_along_uses_it(repo: Repository, tip: str) -> None:
    folder = repo.common_dir / "rebase-merge"
    folder.mkdir()
    (folder / "update-refs").write_text(f"refs/heads/{NAME}\n{tip}\n{repo.zero}\n")
    use = branch_use(repo, NAME)
    assert use is not None
    assert use.words == f"updated by a rebase in {repo.top}"


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
