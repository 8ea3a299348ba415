import errno
import fcntl
import os
import signal
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
from testing.patience import PATIENCE
from testing.repositories import write

from clean_room_agent import proc
from clean_room_agent.errors import RecordError, UsageError
from clean_room_agent.folders import (
    FRESH,
    abandoned_folders,
    flock,
    remove_abandoned,
    remove_all_but,
    remove_at,
    remove_tree,
    temporary_folder,
    user_folder,
)
from clean_room_agent.proc import inherited_environment
from clean_room_agent.workspace import hold, is_held

KILLED = """
import os, signal
from clean_room_agent.folders import temporary_folder
with temporary_folder("commit") as folder:
    (folder / "deep").mkdir()
    (folder / "deep" / "file").write_text("left")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def every_path(top: Path) -> list[str]:
    return sorted(str(path.relative_to(top)) for path in top.rglob("*"))


def test_a_temporary_folder_goes_however_deep_it_is() -> None:
    with temporary_folder("deep") as folder:
        here = os.open(folder, os.O_RDONLY)
        for _ in range(1500):
            os.mkdir("d", dir_fd=here)
            below = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(here)
    assert not folder.exists()


def test_what_is_not_there_is_removed_already(tmp_path: Path) -> None:
    write(tmp_path, {"other": ""})
    remove_tree(tmp_path / "none")
    remove_tree(tmp_path / "none/in none")
    assert every_path(tmp_path) == ["other"]


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_may_not_be_removed_is_said_to_be_that(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "name"
    place.symlink_to(tmp_path) if kind == "link" else place.touch()
    denied = PermissionError(errno.EPERM, "Operation not permitted")
    folder = os.open(tmp_path, os.O_RDONLY)
    with patch.object(os, "unlink", side_effect=denied), pytest.raises(PermissionError):
        remove_at(folder, "name")
    os.close(folder)


def test_a_tree_goes_and_what_its_links_lead_to_stays(tmp_path: Path) -> None:
    write(tmp_path, {"tree/a/b/c.txt": "", "tree/a/d": "", "mine/e.txt": ""})
    (tmp_path / "tree/link").symlink_to(tmp_path / "mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    os.mkfifo(tmp_path / "tree/a/fifo")
    (tmp_path / "tree/a/b").chmod(0)
    (tmp_path / "tree/a").chmod(0o500)
    for name in ("tree", "link"):
        remove_tree(tmp_path / name)
    assert every_path(tmp_path) == ["mine", "mine/e.txt"]


def test_only_what_is_wanted_stays(tmp_path: Path) -> None:
    write(tmp_path, {"a/b.txt": "", "a/c/d.txt": "", "new/e.txt": "", "sub/f.txt": "", "kept/in/g.txt": ""})
    write(tmp_path, {"kept/h.txt": "", "was a file/i.txt": ""})
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "a").chmod(0o500)
    remove_all_but(
        tmp_path, {"a/b.txt", "was a file", "missing/j.txt"}, folders={"sub"}, kept={"kept/in", "kept/no"}
    )
    assert every_path(tmp_path) == ["a", "a/b.txt", "kept", "kept/in", "kept/in/g.txt", "sub"]
    assert (tmp_path / "a").stat().st_mode & 0o700 == 0o700


@pytest.mark.parametrize("name", ["a", "b" * 250])
def test_depth_and_length_of_names_know_no_bound(tmp_path: Path, name: str) -> None:
    before = Path.cwd()
    os.chdir(tmp_path)
    for _ in range(1100):
        os.mkdir(name)  # noqa: PTH102 - relative to where we are
        os.chdir(name)
    os.chdir(before)
    remove_tree(tmp_path / name)
    assert every_path(tmp_path) == []


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def later(folder: Path) -> float:
    return folder.stat().st_mtime + FRESH + 1


def test_a_folder_is_abandoned_only_when_its_process_was_killed(scratch: Path) -> None:
    done = proc.run(
        (sys.executable, "-c", KILLED),
        cwd=scratch,
        env=inherited_environment(without="GIT_") | {"TMPDIR": str(scratch)},
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode in {-signal.SIGKILL, 128 + signal.SIGKILL}
    (left,) = scratch.iterdir()
    with temporary_folder("index") as mine:
        assert abandoned_folders(later(mine)) == (left,)
        assert not remove_abandoned(mine)
        assert remove_abandoned(left)
    assert list(scratch.iterdir()) == []


def test_what_is_young_linked_or_named_otherwise_is_let_be(scratch: Path) -> None:
    names = ("cra-demo-abcdefgh", "cra-index-abcdefgh", "cra-index-short", "other")
    for name in names:
        (scratch / name).mkdir()
    (scratch / "cra-commit-abcdefgh").symlink_to(scratch / "other")
    found = scratch / "cra-index-abcdefgh"
    assert abandoned_folders(found.stat().st_mtime + 1) == ()
    assert abandoned_folders(later(found)) == (found,)
    found.chmod(0)
    assert abandoned_folders(os.lstat(found).st_mtime + FRESH + 1) == (found,)
    assert remove_abandoned(found)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EINVAL, errno.ENOTSUP, errno.EBADF])
def test_a_file_system_without_locks_is_named_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(_handle: int, _operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(RecordError, match=f"cannot lock {tmp_path}: {os.strerror(number)}") as caught:
        flock(0, fcntl.LOCK_EX, tmp_path)
    assert "mounted with locks" in caught.value.hint
    for place in (tmp_path / "lock", tmp_path):
        with pytest.raises(RecordError, match="cannot lock"), hold(place):
            pass
    with pytest.raises(RecordError, match="cannot lock"):
        is_held(tmp_path)


def test_a_user_without_a_home_folder_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/named")
    assert user_folder("XDG_CACHE_HOME", ".cache") == Path("/named")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/me")
    assert user_folder("XDG_CACHE_HOME", ".cache") == Path("/home/me/.cache")
    monkeypatch.setenv("HOME", "relative")
    with pytest.raises(UsageError, match="your home folder is not known"):
        user_folder("XDG_CACHE_HOME", ".cache")
