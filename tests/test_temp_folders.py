import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from testing.patience import PATIENCE

from clean_room_agent import proc
from clean_room_agent.temp_folders import FRESH, abandoned_folders, remove_abandoned, temporary_folder

KILLED = """
import os, signal
from clean_room_agent.temp_folders import temporary_folder
with temporary_folder("commit") as folder:
    (folder / "deep").mkdir()
    (folder / "deep" / "file").write_text("left")
    os.kill(os.getpid(), signal.SIGKILL)
"""


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
        env=proc.inherited_environment(without="GIT_") | {"TMPDIR": str(scratch)},
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
