"""What somebody may remove while a run stands on it, and the word by which the run's end names it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from testing.runs.solving import Project


def _work_tree(till: Project) -> Path:
    (tree,) = (path.parent for path in (till.home / "cache/cra/worktrees").glob("*/*/.git"))
    return tree


def _unlink(folder: Path, pattern: str) -> None:
    for path in folder.glob(pattern):
        path.unlink()


def _replace(path: Path) -> None:
    shutil.copy(path, path.with_name("other"))
    path.with_name("other").replace(path)


RAW = Path(".clean_room/raw.sqlite")
REMOVALS: dict[str, tuple[Callable[[Project], object], str]] = {
    "work tree": (lambda till: shutil.rmtree(_work_tree(till)), "worktree"),
    "cache": (lambda till: shutil.rmtree(till.home / "cache"), "worktree"),
    "git's folder": (lambda till: shutil.rmtree(till.top / ".git"), "git"),
    "git's objects": (lambda till: shutil.rmtree(till.top / ".git/objects"), "git"),
    "git's notes of work trees": (lambda till: shutil.rmtree(till.top / ".git/worktrees"), "worktree"),
    "record": (lambda till: (till.top / RAW).unlink(), "raw.sqlite"),
    "record and journal": (lambda till: _unlink(till.top / ".clean_room", "raw.sqlite*"), "raw.sqlite"),
    "the record's journal": (lambda till: _unlink(till.top / ".clean_room", "raw.sqlite-wal"), "raw.sqlite"),
    "record, another in its place": (lambda till: _replace(till.top / RAW), "raw.sqlite"),
    "the record's content": (lambda till: os.truncate(till.top / RAW, 0), "raw.sqlite"),
    "session": (lambda till: _unlink(till.top / ".clean_room/sessions", "session*"), "session_"),
    ".clean_room": (lambda till: shutil.rmtree(till.top / ".clean_room"), "raw.sqlite"),
    "repository": (lambda till: shutil.rmtree(till.top), "raw.sqlite"),
}
