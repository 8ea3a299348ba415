"""Repositories that borrow objects from others: git works in the sandbox, and nothing else is shown by that way."""

from pathlib import Path

import pytest
from testing.patience import PATIENCE
from testing.repositories import commit, git, make_repository
from testing.sandboxes import installed, on_disk

from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.git.visible_metadata import alternate_folders
from clean_room_agent.git.worktree import add_worktree
from clean_room_agent.orchestrator.config import SandboxConfig, TestingConfig, WorktreeConfig
from clean_room_agent.orchestrator.test_runs.worktrees import SandboxInputs, set_up_sandbox
from clean_room_agent.sandbox.bubblewrap import Sandbox

__all__ = ["on_disk"]  # in the place of `tmp_path`

ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
HISTORY = "git log -p --format=%s && git cat-file -p HEAD:b.py && git status --porcelain"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A repository, one that borrows from it, and one that borrows from that."""
    home = tmp_path / "home"
    source = make_repository(home / "sour ce", {"a.py": "first\n"})
    git(home, "clone", "-q", "--shared", str(source), "middle")
    git(home, "clone", "-q", "--shared", str(home / "middle"), "project")
    top = home / "project"
    git(top, "config", "user.name", "Ada")
    git(top, "config", "user.email", "ada@example.org")
    commit(top, {"b.py": "second\n"}, "Second")
    return home


def sandbox_setup(repo: Repository, tmp_path: Path) -> Sandbox:
    tree = add_worktree(repo, repo.head, tmp_path / "cache/tree", "task")
    sandbox_inputs = SandboxInputs(
        config=SandboxConfig(mode="bwrap"),
        testing=TestingConfig(test_command="true"),
        worktree=WorktreeConfig(),
        home=repo.top.parent,
        try_machine=lambda _: None,
        find=installed,
    )
    found = set_up_sandbox(sandbox_inputs, tree, ENV, tmp_path / "cache/reports/results.xml").sandbox
    assert found is not None
    return found


def test_history_is_whole_in_the_sandbox_of_a_repository_that_borrows_objects(
    home: Path, tmp_path: Path
) -> None:
    repo = open_repository(home / "project")
    sandbox = sandbox_setup(repo, tmp_path)
    done = sandbox.run(HISTORY, env=ENV, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"+first" in done.stdout
    assert b"+second" in done.stdout
    written = sandbox.run("touch /run/cra-objects/0/pack/x || ls -A ~", env=ENV, timeout=PATIENCE)
    assert b"Read-only" in written.stderr
    assert written.stdout == b"project\n"


def test_borrowed_are_the_folders_that_git_would_use(home: Path) -> None:
    expected = (home / "middle/.git/objects", home / "sour ce/.git/objects")
    assert alternate_folders(open_repository(home / "project")) == expected
    assert alternate_folders(open_repository(home / "sour ce")) == ()
    listed = home / "project/.git/objects/info/alternates"
    listed.write_text(
        '# a remark\n\n../../../middle/.git/objects\n"../../../sour\\040ce/.git/objects"\n/gone\n"a\\"\n"\\x"\n'
    )
    assert alternate_folders(open_repository(home / "project")) == expected


def test_a_folder_of_something_else_is_not_shown(home: Path, tmp_path: Path) -> None:
    secrets = home / "secrets"
    secrets.mkdir()
    (secrets / "id_rsa").write_text("key\n")
    with (home / "project/.git/objects/info/alternates").open("a") as file:
        file.write(f"{secrets}\n")
    repo = open_repository(home / "project")
    assert secrets not in alternate_folders(repo)
    done = sandbox_setup(repo, tmp_path).run(
        "grep -r key /run/cra-objects; git log -1", env=ENV, timeout=PATIENCE
    )
    assert b"id_rsa" not in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize(
    "name",
    [
        "ab/party.jpg",
        "pack/party.jpg",
        "info/party.jpg",
        f"ab/{'c' * 38}",
        f"pack/pack-{'c' * 40}.pack",
        "ab/cd/party.jpg",
    ],
)
def test_a_folder_whose_names_alone_are_those_of_objects_is_not_shown(name: str, home: Path) -> None:
    photos = home / "photos"
    (photos / name).parent.mkdir(parents=True)
    (photos / name).write_bytes(b"\xff\xd8\xff\xe0 a photo")
    with (home / "project/.git/objects/info/alternates").open("a") as file:
        file.write(f"{photos}\n")
    found = alternate_folders(open_repository(home / "project"))
    assert photos not in found
    assert len(found) == 2


def test_packs_and_what_belongs_to_them_are_objects(home: Path) -> None:
    source = home / "sour ce"
    git(source, "-c", "repack.writeBitmaps=true", "gc", "-q")
    git(source, "commit-graph", "write", "--reachable", "--split")
    git(source, "multi-pack-index", "write", "--bitmap")
    assert source / ".git/objects" in alternate_folders(open_repository(home / "project"))


def test_a_circle_of_borrowing_ends(home: Path) -> None:
    (home / "sour ce/.git/objects/info/alternates").write_text(f"{home}/middle/.git/objects\n")
    assert len(alternate_folders(open_repository(home / "project"))) == 2
