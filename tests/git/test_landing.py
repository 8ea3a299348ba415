import pytest
from tests.fakes.repositories import commit_change, fingerprint, git

from clean_room_agent.errors import GitError, RepositoryError
from clean_room_agent.git.landing import (
    create_branch,
    delete_ref,
    list_refs,
    update_ref,
    with_room,
)
from clean_room_agent.git.repository import Repository


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


def test_a_branch_is_new_or_refused(repo: Repository) -> None:
    before = fingerprint(repo.top, refs=("refs/cra/", "refs/heads/cra/"))
    made = commit_change(repo, {"a.py": b"x"})
    create_branch(repo, "cra/1234", made)
    assert git(repo.top, "rev-parse", "cra/1234") == made
    assert fingerprint(repo.top, refs=("refs/cra/", "refs/heads/cra/")) == before
    for name in ("cra/1234", "cra", "bad..name", "main"):
        with pytest.raises(RepositoryError):
            create_branch(repo, name, repo.head)
    assert git(repo.top, "rev-parse", "cra/1234") == made


def test_a_branch_where_results_would_stand_is_told_beforehand(repo: Repository) -> None:
    git(repo.top, "branch", "cra/old")
    assert with_room(repo, "cra") == repo
    git(repo.top, "branch", "-m", "cra/old", "cra")
    with pytest.raises(RepositoryError, match="a branch named cra") as caught:
        with_room(repo, "cra")
    assert "git branch -m cra" in caught.value.hint
