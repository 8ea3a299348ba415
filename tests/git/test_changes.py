"""Histories are streamed with all that a filter asks of a commit."""

from pathlib import Path

import pytest
from testing.repositories import commit, git, make_repository

from clean_room_agent.errors import GitError
from clean_room_agent.git.changes import resolve_commit, stream_changes


def test_parents_come_before_children_with_counts_of_lines(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "shop", {"a.py": "A = 1\n", "b.bin": b"\0\1"})
    commit(
        top, {"a.py": "A = 2\nB = 3\n", "b.bin": b"\0\2", "new name.py": "C = 1\n"}, "Change\n\nand say why"
    )
    last = commit(top, {"a.py": None}, "Remove")
    (first, second, third) = stream_changes(top / ".git", last)
    assert (first.parents, first.files, first.message) == ((), (), "Begin")
    assert second.parents == (first.hash,)
    assert second.message == "Change\n\nand say why"
    assert second.author == "Ada Example <ada@example.org>"
    assert [(one.path, one.status, one.lines, one.is_file) for one in second.files] == [
        ("a.py", "M", 3, True),
        ("b.bin", "M", None, True),
        ("new name.py", "A", 1, True),
    ]
    assert [(one.path, one.status, one.lines) for one in third.files] == [("a.py", "D", 2)]


def test_a_rename_is_two_paths_and_a_link_is_no_file(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "shop", {"a.py": "A = 1\n" * 20})
    git(top, "mv", "a.py", "b.py")
    (top / "link.py").symlink_to("b.py")
    changes = list(stream_changes(top / ".git", commit(top, {}, "Move")))
    assert [(one.path, one.status, one.is_file) for one in changes[-1].files] == [
        ("a.py", "D", True),
        ("b.py", "A", True),
        ("link.py", "A", False),
    ]


def test_a_merge_names_its_parents_and_no_files(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "shop", {"a.py": "A = 1\n"})
    git(top, "checkout", "-q", "-b", "side")
    commit(top, {"b.py": "B = 1\n"}, "Side")
    git(top, "checkout", "-q", "main")
    commit(top, {"c.py": "C = 1\n"}, "Main")
    git(top, "merge", "-q", "--no-ff", "-m", "Join", "side")
    (*_, merge) = stream_changes(top / ".git", git(top, "rev-parse", "HEAD"))
    assert (len(merge.parents), merge.files) == (2, ())


def test_a_revision_is_resolved_or_none(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "shop", {"a.py": "A = 1\n"})
    assert resolve_commit(top / ".git", "main") == git(top, "rev-parse", "HEAD")
    assert resolve_commit(top / ".git", "--output=x") is None
    with pytest.raises(GitError):
        list(stream_changes(top / ".git", "f" * 40))
