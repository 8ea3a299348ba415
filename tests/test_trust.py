import multiprocessing
import os
import shutil
from pathlib import Path

import pytest
from testing.repositories import git, make_repository

from clean_room_agent.errors import UsageError
from clean_room_agent.folders import remove_tree
from clean_room_agent.git.repository import list_work_tree
from clean_room_agent.trust import KEY, forget, is_ours, require_trust, state_folder, trust
from clean_room_agent.workspace import Workspace, trusted_workspace

FOREIGN = "not known to be yours"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", {"a.py": "x = 1\n"})


def planted(top: Path) -> Path:
    """A folder that came with the repository."""
    folder = top / ".clean_room"
    folder.mkdir()
    (folder / "config.toml").write_text('[testing]\ntest_command = "touch /tmp/owned"\n')
    return folder


def test_a_repository_without_a_folder_is_fit(top: Path) -> None:
    assert trusted_workspace(top).folder == top / ".clean_room"
    assert not (top / ".clean_room").exists()


def test_a_folder_that_was_made_here_is_ours(top: Path) -> None:
    Workspace(repo=top).create()
    assert is_ours(trusted_workspace(top).folder)


def test_a_folder_that_came_with_the_repository_is_not_used(top: Path) -> None:
    folder = planted(top)
    with pytest.raises(UsageError, match=FOREIGN) as caught:
        require_trust(folder)
    assert "cra init --trust" in caught.value.hint
    with pytest.raises(UsageError, match=FOREIGN):
        Workspace(repo=top).create()
    assert [path.name for path in folder.iterdir()] == ["config.toml"]


def test_a_folder_that_is_trusted_by_hand_is_used(top: Path) -> None:
    folder = planted(top)
    trust(folder)
    require_trust(folder)
    forget(folder)
    assert not is_ours(folder)


@pytest.mark.parametrize("name", [".clean_room/config.toml", ".Clean_Room/config.toml", ".clean_room"])
def test_what_git_tracks_is_never_used(top: Path, name: str) -> None:
    Workspace(repo=top).create()
    if name == ".clean_room":
        shutil.rmtree(top / name)
    (top / name).parent.mkdir(exist_ok=True)
    (top / name).write_text("")
    git(top, "add", "-f", name)
    with pytest.raises(UsageError, match="git tracks") as caught:
        require_trust(top / ".clean_room")
    assert f"git rm -r -f {name.partition('/')[0]};" in caught.value.hint
    with pytest.raises(UsageError, match="git tracks"):
        require_trust(top / ".clean_room", list_work_tree(top).paths)
    with pytest.raises(UsageError, match="git tracks"):
        trust(top / ".clean_room")
    git(top, "rm", "-q", "--cached", name)
    with pytest.raises(UsageError):  # what was tracked once stays foreign
        require_trust(top / ".clean_room")


def test_a_moved_or_copied_folder_must_be_trusted_again(top: Path, tmp_path: Path) -> None:
    Workspace(repo=top).create()
    copied = Path(shutil.copytree(top, tmp_path / "copy"))
    moved = top.rename(tmp_path / "moved")
    for repo in (copied, moved):
        with pytest.raises(UsageError, match="moved or copied"):
            trusted_workspace(repo)


def test_a_folder_in_the_place_of_ours_is_foreign(top: Path) -> None:
    Workspace(repo=top).create()
    folder = top / ".clean_room"
    folder.rename(top / "old")
    shutil.copytree(top / "old", folder)
    assert not is_ours(folder)


def test_an_inode_that_is_given_again_makes_nothing_ours(top: Path) -> None:
    Workspace(repo=top).create()
    folder = top / ".clean_room"
    (folder / KEY).write_text("f" * 64)
    assert not is_ours(folder)


@pytest.mark.parametrize(
    "name", ["raw.lock", "raw.sqlite-wal", "sessions", "config.toml", "adapters/a/b.gguf"]
)
def test_no_link_may_stand_in_the_folder(top: Path, tmp_path: Path, name: str) -> None:
    Workspace(repo=top).create()
    link = top / ".clean_room" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_dir():
        link.rmdir()
    link.symlink_to(tmp_path)
    with pytest.raises(UsageError, match="is a link"):
        trusted_workspace(top)
    with pytest.raises(UsageError, match="is a link"):
        trust(top / ".clean_room")


@pytest.mark.parametrize("left", [(), (KEY,)])
def test_what_a_killed_process_left_of_making_it_is_made_again(top: Path, left: tuple[str, ...]) -> None:
    folder = top / ".clean_room"
    folder.mkdir()
    for name in left:
        (folder / name).write_text("half")
    require_trust(folder)
    Workspace(repo=top).create()
    assert is_ours(folder)


def test_a_link_in_the_place_of_the_key_is_not_written_through(top: Path, tmp_path: Path) -> None:
    folder = top / ".clean_room"
    folder.mkdir()
    target = tmp_path / "target"
    target.write_text("mine")
    (folder / KEY).symlink_to(target)
    Workspace(repo=top).create()
    assert target.read_text() == "mine"
    assert is_ours(folder)


def create(top: Path) -> None:
    Workspace(repo=top).create()


def test_many_processes_make_it_at_once(top: Path) -> None:
    context = multiprocessing.get_context("fork")
    makers = [context.Process(target=create, args=(top,)) for _ in range(12)]
    for each in makers:
        each.start()
    for each in makers:
        each.join()
    assert [each.exitcode for each in makers] == [0] * 12
    assert is_ours(top / ".clean_room")


def test_a_linked_work_tree_has_a_folder_of_its_own(top: Path, tmp_path: Path) -> None:
    git(top, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    Workspace(repo=top).create()
    Workspace(repo=tmp_path / "side").create()
    assert trusted_workspace(top).folder != trusted_workspace(tmp_path / "side").folder


def test_a_path_through_a_link_means_the_same_folder(top: Path, tmp_path: Path) -> None:
    Workspace(repo=top).create()
    (tmp_path / "alias").symlink_to(top)
    assert is_ours(tmp_path / "alias" / ".clean_room")


@pytest.mark.parametrize("value", ["", "state", "./state"])
def test_a_state_folder_that_depends_on_where_we_are_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", value)
    assert state_folder() == tmp_path / ".local/state/cra"


def test_a_state_folder_that_cannot_be_made_is_named(
    monkeypatch: pytest.MonkeyPatch, top: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="cannot make") as caught:
        Workspace(repo=top).create()
    assert "XDG_STATE_HOME" in caught.value.hint


def test_folders_that_stand_too_deep_are_named_and_not_followed(top: Path) -> None:
    Workspace(repo=top).create()
    folder = top / ".clean_room"
    before = Path.cwd()
    os.chdir(folder)
    for _ in range(1100):
        os.mkdir("d")  # noqa: PTH102 - relative to where we are
        os.chdir("d")
    os.chdir(before)
    try:
        with pytest.raises(UsageError, match="too deep") as raised:
            require_trust(folder)
        assert "remove" in raised.value.hint
    finally:
        remove_tree(folder)


@pytest.mark.parametrize(
    "name", ["raw.sqlite", "raw.sqlite-wal", "config.toml", "redaction.key", "sessions/x"]
)
def test_no_fifo_may_stand_in_the_folder(top: Path, name: str) -> None:
    Workspace(repo=top).create()
    os.mkfifo(top / ".clean_room" / name)
    with pytest.raises(UsageError, match=f"{name} is a FIFO"):
        trusted_workspace(top)
    with pytest.raises(UsageError, match=f"{name} is a FIFO"):
        trust(top / ".clean_room")


def test_a_fifo_instead_of_the_key_or_the_note_makes_nothing_ours(top: Path) -> None:
    folder = top / ".clean_room"
    Workspace(repo=top).create()
    (note,) = (
        path for path in (state_folder() / "folders").iterdir() if str(folder).encode() in path.read_bytes()
    )
    for path in (folder / KEY, note):
        kept = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        assert not is_ours(folder)
        path.unlink()
        path.write_bytes(kept)
        assert is_ours(folder)
