import contextlib
import multiprocessing
import os
import shutil
import signal
import stat
import sys
import threading
import time
from pathlib import Path

import pytest
from testing.patience import wait_until
from testing.repositories import git, make_repository

from clean_room_agent.errors import RecordError, UsageError
from clean_room_agent.folders import remove_tree
from clean_room_agent.git.repository import list_work_tree
from clean_room_agent.workspace import (
    CACHE_HINT,
    KEY,
    Workspace,
    forget,
    hold,
    is_ours,
    private_folder,
    require_trust,
    state_folder,
    trust,
    trusted_workspace,
)

TASK = "3f0c8a52-7c7e-4a5c-9a53-0f2f0a6f0d11"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_create_makes_a_private_folder_that_ignores_itself(tmp_path: Path) -> None:
    Workspace(repo=tmp_path).create()
    folder = tmp_path / ".clean_room"
    assert mode_of(folder) == 0o700
    assert mode_of(folder / "sessions") == 0o700
    assert (folder / ".gitignore").read_text() == "*\n"


def test_create_leaves_the_users_gitignore_alone(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("build/\n")
    Workspace(repo=tmp_path).create()
    assert (tmp_path / ".gitignore").read_text() == "build/\n"


def test_create_closes_a_folder_that_others_could_read_and_keeps_what_is_in_it(tmp_path: Path) -> None:
    workspace = Workspace(repo=tmp_path)
    workspace.create()
    workspace.folder.chmod(0o755)
    workspace.config.write_text("[models]\n")
    (workspace.folder / ".gitignore").write_text("mine\n")
    workspace.create()
    assert mode_of(workspace.folder) == 0o700
    assert workspace.config.read_text() == "[models]\n"
    assert (workspace.folder / ".gitignore").read_text() == "mine\n"


def test_files_of_other_runs_may_come_and_go_meanwhile(tmp_path: Path) -> None:
    workspace = Workspace(repo=tmp_path)
    workspace.create()
    stop = threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            for number in range(50):
                (workspace.sessions / f"{number}.part-journal").touch()
            for number in range(50):
                (workspace.sessions / f"{number}.part-journal").unlink()

    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        for _ in range(60):
            workspace.create()
    finally:
        stop.set()
        other.join()
    assert list(workspace.sessions.iterdir()) == []
    assert mode_of(workspace.sessions) == 0o700


def test_create_refuses_a_folder_that_is_a_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    repo = tmp_path / "repo"
    elsewhere.mkdir()
    repo.mkdir()
    (repo / ".clean_room").symlink_to(elsewhere)
    with pytest.raises(UsageError, match="is a link"):
        Workspace(repo=repo).create()
    assert list(elsewhere.iterdir()) == []


def test_create_names_the_remedy_where_the_repository_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        Workspace(repo=tmp_path / "nowhere").create()
    assert "writable" in caught.value.hint


def closed_to(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """`folder` cannot be written, as any user but root finds it."""
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != folder)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace(repo=tmp_path)
    workspace.create()
    closed_to(monkeypatch, workspace.folder)
    with pytest.raises(UsageError, match=f"{workspace.folder} cannot be written") as caught:
        workspace.create()
    assert "chmod u+wx" in caught.value.hint


def test_a_cache_that_cannot_be_written_is_not_taken_for_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed_to(monkeypatch, tmp_path)
    with pytest.raises(UsageError, match=f"{tmp_path} cannot be written") as caught:
        private_folder(tmp_path, hint=CACHE_HINT)
    assert "XDG_CACHE_HOME" in caught.value.hint
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot make") as caught:
        private_folder(tmp_path / "file" / "new")
    assert caught.value.hint == f"let {tmp_path / 'file'} be writable"


def test_a_pass_has_the_session_and_the_copy_of_its_task(tmp_path: Path) -> None:
    workspace = Workspace(repo=tmp_path)
    assert workspace.session(f"{TASK}:impl:a:b") == tmp_path / f".clean_room/sessions/session_{TASK}.sqlite"
    assert workspace.run_copy(f"{TASK}:meta_plan") == tmp_path / f".clean_room/sessions/curated_{TASK}.sqlite"
    assert workspace.task_lock(TASK).parent == workspace.sessions


@pytest.mark.parametrize("task_id", ["", "../../etc/passwd", "a/b", "a b", "x" * 65, ":meta_plan", "a\n"])
def test_an_id_that_could_leave_the_folder_is_refused(tmp_path: Path, task_id: str) -> None:
    with pytest.raises(UsageError):
        Workspace(repo=tmp_path).session(task_id)


def test_worktrees_of_repositories_with_the_same_name_stand_apart_outside_of_them(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    one = Workspace(repo=tmp_path / "a" / "my project").worktrees(cache)
    two = Workspace(repo=tmp_path / "b" / "my project").worktrees(cache)
    assert one != two
    assert one.parent == two.parent == cache / "worktrees"
    assert one.name.startswith("my_project-")
    assert one == Workspace(repo=tmp_path / "a" / ".." / "a" / "my project").worktrees(cache)


def test_a_lock_is_held_once_and_free_afterwards(tmp_path: Path) -> None:
    lock = tmp_path / "some.lock"
    with (
        hold(lock),
        pytest.raises(RecordError, match="the index") as caught,
        hold(lock, timeout=0, what="the index"),
    ):
        pytest.fail("both hold it")
    assert "wait" in caught.value.hint
    with hold(lock, timeout=0):
        assert mode_of(lock) == 0o600


def test_a_folder_can_be_held(tmp_path: Path) -> None:
    with hold(tmp_path), pytest.raises(RecordError), hold(tmp_path, timeout=0):
        pytest.fail("both hold it")


def take_in_time(lock: Path) -> None:
    with hold(lock, timeout=1):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_time_passes_for_who_waits_for_a_lock_while_all_stand_still(tmp_path: Path) -> None:
    lock = tmp_path / "some.lock"
    process = multiprocessing.get_context("spawn").Process(target=take_in_time, args=(lock,))
    with hold(lock):
        process.start()
        assert process.pid is not None
        wait_until(lambda: opened_by(process.pid, lock), "the other's waiting")
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(1.5)
        os.kill(process.pid, signal.SIGCONT)
        time.sleep(0.05)
    process.join()
    assert process.exitcode == 0


def opened_by(pid: int | None, path: Path) -> bool:
    with contextlib.suppress(OSError):  # what it opens and closes meanwhile
        return any(each.readlink() == path for each in Path(f"/proc/{pid}/fd").iterdir())
    return False


def die_holding(lock: Path) -> None:
    with hold(lock):
        os.kill(os.getpid(), 9)


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    lock = tmp_path / "some.lock"
    process = multiprocessing.get_context("spawn").Process(target=die_holding, args=(lock,))
    process.start()
    process.join()
    assert process.exitcode == -9
    with hold(lock, timeout=0):
        pass


@pytest.mark.parametrize("name", ["sessions", "raw.lock", ".gitignore"])
def test_create_follows_no_link_below_its_folder(tmp_path: Path, name: str) -> None:
    workspace = Workspace(repo=tmp_path / "repo")
    workspace.repo.mkdir()
    workspace.create()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    path = workspace.folder / name
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    path.symlink_to(elsewhere)
    with pytest.raises(UsageError, match="is a link"):
        workspace.create()
    assert mode_of(elsewhere) == 0o755
    assert list(elsewhere.iterdir()) == []


def test_a_lock_is_not_taken_by_way_of_a_link(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "raw.lock").symlink_to(target)
    with pytest.raises(RecordError, match="is a link"), hold(tmp_path / "raw.lock"):
        pass
    assert target.read_text() == "mine"


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
