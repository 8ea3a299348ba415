"""`cra solve` beside the real git-lfs, where it is installed: nothing of the user's changes, and no filter runs."""

import os
import shutil
from pathlib import Path

import pytest
from testing.repositories import commit, fingerprint, git
from testing.runs.solving import Project

OURS = ("refs/cra/", "refs/heads/cra/")


def stored(top: Path) -> dict[str, bytes]:
    """What git-lfs keeps beside git."""
    files = (path for path in sorted((top / ".git/lfs").rglob("*")) if path.is_file())
    return {str(path.relative_to(top)): path.read_bytes() for path in files}


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="needs git-lfs")
def test_changed_files_of_lfs_stay_and_the_branch_has_their_pointers(till: Project) -> None:
    top = till.top
    git(top, "lfs", "install", "--local")
    large = os.urandom(20_000)
    commit(top, {".gitattributes": "*.dat filter=lfs diff=lfs merge=lfs -text\n", "a.dat": large}, "Add data")
    (top / "a.dat").write_bytes(large + b"changed")
    (top / "b.dat").write_bytes(b"new")
    before, objects = fingerprint(top, refs=OURS), stored(top)
    told = till.solve_scripted()
    assert (told.code, told.traces) == (0, {}), told.err
    assert "filter drivers do not run here" in told.err
    assert (fingerprint(top, refs=OURS), stored(top)) == (before, objects)
    assert till.branch_file("a.dat").startswith(b"version https://git-lfs.github.com/spec/v1\n")
