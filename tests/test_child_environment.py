import os
import sys
from pathlib import Path

import pytest
from testing.patience import PATIENCE

from clean_room_agent import proc
from clean_room_agent.child_environment import absolute_entries, absolute_program, outside

HOSTILE = {
    "LD_LIBRARY_PATH": "/usr/local/cuda/lib64:",
    "LD_PRELOAD": "./libevil.so",
    "LD_AUDIT": "libevil.so",
    "DYLD_INSERT_LIBRARIES": "x",
    "BASH_ENV": "start.sh",
    "ENV": "start.sh",
}


def plant(folder: Path, name: str, canary: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\ntouch {canary}\n")
    (folder / name).chmod(0o755)


def test_a_child_gets_nothing_that_means_here() -> None:
    given = {**HOSTILE, "PATH": ":/usr/bin:.:bin:/bin:", "HOME": "/h", "LDFLAGS": "-l", "ENVIRONMENT": "e"}
    kept = {"PATH": "/usr/bin:/bin", "HOME": "/h", "LDFLAGS": "-l", "ENVIRONMENT": "e"}
    assert outside(given) == kept


@pytest.mark.parametrize("path", ["", ":", ".", "bin:./x", "~/bin"])
def test_a_path_of_relative_entries_is_empty(path: str) -> None:
    assert absolute_entries(path) == ""
    assert absolute_program("git", {"PATH": path}) == "git"


def test_a_program_is_looked_up_once(tmp_path: Path) -> None:
    plant(tmp_path / "one", "tool", tmp_path / "canary")
    path = {"PATH": f"{tmp_path}/none:{tmp_path}/one"}
    assert absolute_program("tool", path) == f"{tmp_path}/one/tool"
    plant(tmp_path / "none", "tool", tmp_path / "canary")
    assert absolute_program("tool", path) == f"{tmp_path}/one/tool"
    assert absolute_program("./tool", path) == "./tool"


@pytest.mark.parametrize("contain", [True, False])
@pytest.mark.parametrize("path", [":/usr/bin:/bin", ".:/usr/bin:/bin", "bin:/usr/bin:/bin"])
def test_no_program_of_the_folder_is_run(tmp_path: Path, path: str, *, contain: bool) -> None:
    canary = tmp_path / "canary"
    for folder in (tmp_path, tmp_path / "bin"):
        for name in ("git", "true"):
            plant(folder, name, canary)
    for command in (("git", "--version"), "true; git --version"):
        done = proc.run(command, cwd=tmp_path, env={"PATH": path}, timeout=PATIENCE, contain=contain)
        assert done.stdout.startswith(b"git version")
    assert next(iter(proc.stream(("git", "--version"), cwd=tmp_path, env={"PATH": path})))
    assert not canary.exists()


@pytest.mark.parametrize("contain", [True, False])
@pytest.mark.parametrize("inherited", [True, False])
def test_the_loader_hears_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, contain: bool, inherited: bool
) -> None:
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    env = None if inherited else dict(os.environ)
    done = proc.run(("env",), cwd=tmp_path, env=env, timeout=PATIENCE, contain=contain)
    seen = {line.partition("=")[0] for line in done.stdout.decode().splitlines()}
    assert seen.isdisjoint(HOSTILE)
    assert b"cannot be preloaded" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_supervisor_has_no_environment(tmp_path: Path) -> None:
    command = "tr '\\0' '\\n' < /proc/$PPID/environ"
    done = proc.run(command, cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "A": "b"}, timeout=PATIENCE)
    assert b"A=b" not in done.stdout
