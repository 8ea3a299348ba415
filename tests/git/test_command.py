"""What a configuration names and git would run: not when we ask."""

import os
from pathlib import Path

import pytest
from testing.repositories import commit, git, make_repository, write
from testing.states.hostile import canary, canary_program

from clean_room_agent.errors import GitError
from clean_room_agent.git.command import (
    LITTLE,
    MAKE_ROOM,
    NamedPrograms,
    environment,
    named_programs,
    one_line,
    remedy_for,
)
from clean_room_agent.git.command import git as hardened_git
from clean_room_agent.git.repository import open_repository
from clean_room_agent.git.worktree import add_worktree, remove_worktree, reset_worktree


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", {"a.py": "a\n"})


def test_hooks_and_filters_with_names_of_their_own_are_found(top: Path) -> None:
    git(top, "config", "hook.a=b.c.command", "false")
    git(top, "config", "--add", "hook.a=b.c.event", "post-checkout")
    git(top, "config", "hook.lonely.event", "post-commit")
    git(top, "config", "filter.lfs.process", "git-lfs")
    assert named_programs(top) == NamedPrograms(filters=("lfs",), hooks=("a=b.c", "lonely"))


def test_a_configured_hook_is_off_in_every_way_that_some_git_knows(top: Path) -> None:
    given = environment({}, NamedPrograms(hooks=("a=b",)))
    said = {
        given[f"GIT_CONFIG_KEY_{number}"]: given[f"GIT_CONFIG_VALUE_{number}"]
        for number in range(int(given["GIT_CONFIG_COUNT"]))
    }
    assert said == {"hook.a=b.enabled": "false", "hook.a=b.event": "", "hook.a=b.command": "true"}


def test_configured_hooks_do_not_run(top: Path, tmp_path: Path) -> None:
    program = canary_program(tmp_path, tmp_path / "program")
    for event in ("reference-transaction", "post-checkout", "post-index-change"):
        git(top, "config", "--add", "hook.canary.event", event)
    git(top, "config", "hook.canary.command", str(program))
    (tmp_path / "canary").unlink(missing_ok=True)
    repo = open_repository(top)
    tree = add_worktree(repo, repo.head, tmp_path / "tree", "t1")
    write(tree.path, {"a.py": "b\n"})
    reset_worktree(tree, repo.head)
    remove_worktree(tree)
    assert canary(tmp_path) == ()


@pytest.mark.parametrize("protocol", ["ext", "file"])
def test_missing_contents_are_never_fetched_whatever_is_allowed(tmp_path: Path, protocol: str) -> None:
    source = make_repository(tmp_path / "source", {"a.py": "a\n"})
    commit(source, {"a.py": "b\n"}, "Second")
    git(source, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{source}", "clone")
    top = tmp_path / "clone"
    program = canary_program(tmp_path, tmp_path / "program")
    urls = {"ext": f"ext::{program} %S", "file": f"file://{source}"}
    git(top, "config", "remote.origin.url", urls[protocol])
    git(top, "config", f"protocol.{protocol}.allow", "always")
    git(top, "config", "remote.origin.uploadpack", str(program))
    repo = open_repository(top)
    with pytest.raises(GitError) as caught:
        hardened_git("cat-file", "-p", f"{repo.head}:a.py", cwd=top)
    assert "git fetch --refetch" in caught.value.hint
    assert canary(tmp_path) == ()


def test_git_is_not_taken_from_the_folder_that_it_works_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = make_repository(tmp_path / "repo", {"a.py": "x = 1\n"})
    canary = tmp_path / "canary"
    for folder in (top, top / "bin"):
        folder.mkdir(exist_ok=True)
        (folder / "git").write_text(f"#!/bin/sh\ntouch {canary}\n")
        (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f":.:bin:{os.environ['PATH']}")
    monkeypatch.chdir(top)
    assert one_line(hardened_git("rev-parse", "--show-toplevel", cwd=top)) == str(top)
    assert not canary.exists()


@pytest.mark.parametrize(
    "words", ["fatal: couldn't write 'HEAD.lock'", "error: unable to create temporary file"]
)
def test_what_cannot_be_written_on_a_full_disk_is_told_to_make_room(words: str) -> None:
    assert remedy_for(words, LITTLE - 1) == MAKE_ROOM
    assert remedy_for(words, LITTLE) == ""
    assert remedy_for("fatal: 'x' is not a commit", 0) == ""
    assert "git's folder must be writable" in remedy_for("unable to create directory for .git/refs/x", LITTLE)
    assert remedy_for(f"{words}: No space left on device", LITTLE) == MAKE_ROOM


def test_what_git_says_in_two_lines_is_one_error(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "r", {"a.py": ""})
    with pytest.raises(GitError) as caught:
        hardened_git("branch", "-D", "one", "two", cwd=top)
    assert caught.value.message.count("error: ") == 1
    assert "one" in caught.value.message
    assert "two" in caught.value.message
