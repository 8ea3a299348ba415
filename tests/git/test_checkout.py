"""A worktree that shows one commit after another."""

from pathlib import Path

import pytest
from testing.repositories import commit, git

from clean_room_agent.errors import GitError
from clean_room_agent.git.checkout import ParentCheckout
from clean_room_agent.git.repository import Repository


def test_commits_are_shown_without_writing_to_their_repository(repo: Repository, tmp_path: Path) -> None:
    second = commit(repo.top, {"a.py": "new\n", "b.py": None}, "Change")
    before = git(repo.top, "worktree", "list")
    shown = ParentCheckout(repo.git_dir, tmp_path / "shown")
    shown.show(second)
    assert (shown.root / "a.py").read_text() == "new\n"
    assert not (shown.root / "b.py").exists()
    shown.show(repo.head)
    assert (shown.root / "a.py").read_text() == "1\n2\n3\n"
    assert (shown.root / "b.py").exists()
    assert git(repo.top, "worktree", "list") == before


def test_a_commit_with_our_own_folder_is_not_checked_out(repo: Repository, tmp_path: Path) -> None:
    bad = commit(repo.top, {".clean_room/config.toml": "x"}, "Mine")
    with pytest.raises(GitError, match="belongs to this program"):
        ParentCheckout(repo.git_dir, tmp_path / "shown").show(bad)
