"""Objects and clones: nothing of the caller's environment steers git."""

import os
from pathlib import Path

import pytest
from testing.repositories import commit, git, make_repository

from clean_room_agent.errors import GitError, UsageError
from clean_room_agent.git.clones import Objects, clone
from clean_room_agent.git.worktree import ParentCheckout


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = make_repository(tmp_path / "shop", {"LICENSE": "MIT", "src/a.py": "A = 1\n", "b.bin": b"\0\n\xff"})
    commit(top, {"src/a.py": "A = 2\n"}, "Change")
    return top


def test_objects_are_read_by_commit_and_path(top: Path) -> None:
    objects = Objects(top / ".git")
    assert objects.read("HEAD:src/a.py") == b"A = 2\n"
    assert objects.read("HEAD~1:src/a.py") == b"A = 1\n"
    assert objects.read("HEAD:b.bin") == b"\0\n\xff"
    for missing in ("HEAD:none.py", "HEAD:two words", "HEAD:line\nbreak", "HEAD:half\udcff"):
        assert objects.read(missing) is None
    assert objects.read("HEAD:src/a.py") == b"A = 2\n"
    assert set(objects.list_folder("HEAD")) == {"LICENSE", "b.bin"}


def test_the_callers_variables_do_not_steer_it(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repository(tmp_path / "other", {"src/a.py": "OTHER\n"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other / ".git" / "objects"))
    objects = Objects(top / ".git")
    assert objects.read("HEAD:src/a.py") == b"A = 2\n"
    assert os.environ["GIT_DIR"] == str(other / ".git")


def test_a_clone_is_whole_or_not_there(top: Path, tmp_path: Path) -> None:
    clone(f"file://{top}", tmp_path / "clones" / "shop.git")
    assert git(tmp_path / "clones" / "shop.git", "rev-parse", "HEAD") == git(top, "rev-parse", "HEAD")
    with pytest.raises(GitError, match="none"):
        clone(f"file://{tmp_path}/none", tmp_path / "clones" / "none.git")
    with pytest.raises(UsageError):
        clone("ext::sh -c false", tmp_path / "clones" / "bad.git")
    assert [path.name for path in (tmp_path / "clones").iterdir()] == ["shop.git"]


def test_a_hook_of_the_template_does_not_run(top: Path, tmp_path: Path) -> None:
    checkout = ParentCheckout(top / ".git", tmp_path / "work" / "tree")
    checkout.show(git(top, "rev-parse", "HEAD~1"))
    assert (checkout.root / "src" / "a.py").read_text() == "A = 1\n"
    hook = checkout.root / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    checkout.show(git(top, "rev-parse", "HEAD"))
    assert (checkout.root / "src" / "a.py").read_text() == "A = 2\n"
    assert checkout.paths() == {"LICENSE", "src/a.py", "b.bin"}
    assert not (tmp_path / "ran").exists()


def test_a_damaged_object_is_missing_and_the_others_are_not(top: Path) -> None:
    blob = git(top, "hash-object", "-w", "LICENSE")
    damaged = top / ".git/objects" / blob[:2] / blob[2:]
    damaged.chmod(0o644)
    damaged.write_bytes(damaged.read_bytes()[:8])
    objects = Objects(top / ".git")
    assert objects.read(blob) is None
    assert objects.read("HEAD:src/a.py") == b"A = 2\n"
