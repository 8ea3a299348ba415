"""Refs are written under their own name, and nowhere else."""

import pytest
from testing.repositories import commit_change, git

from clean_room_agent.errors import GitError, RepositoryError
from clean_room_agent.git.fsync import refuse_linked, sync_commit, write_ref
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
