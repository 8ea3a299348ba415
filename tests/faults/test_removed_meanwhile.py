"""Somebody removes, in mid-run, what the run stands on: it ends with a clear word, and never as complete without a record."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from testing.runs.solving import Project, Script
from testing.servers.ollama_script import ChatCall
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.execute.implement import IMPLEMENT


def work_tree(till: Project) -> Path:
    (tree,) = (path.parent for path in (till.home / "cache/cra/worktrees").glob("*/*/.git"))
    return tree


def remove_session(till: Project) -> None:
    for path in till.top.glob(".clean_room/sessions/session*"):
        path.unlink()


REMOVALS: dict[str, tuple[Callable[[Project], object], str]] = {
    "work tree": (lambda till: shutil.rmtree(work_tree(till)), "worktree"),
    "git's objects": (lambda till: shutil.rmtree(till.top / ".git/objects"), "git"),
    "record": (lambda till: (till.top / ".clean_room/raw.sqlite").unlink(), "raw.sqlite"),
    "the record's content": (lambda till: os.truncate(till.top / ".clean_room/raw.sqlite", 0), "raw.sqlite"),
    "session": (remove_session, "session_"),
    "repository": (lambda till: shutil.rmtree(till.top), "raw.sqlite"),
}
"""What is removed, and the word by which the run's end names it."""
RECORDED = ("work tree", "git's objects")
"""Removed, it leaves the record, which then knows how the run ended."""


@pytest.mark.parametrize("name", REMOVALS)
def test_a_run_whose_ground_is_removed_says_what_is_gone(till: Project, name: str) -> None:
    remove, word = REMOVALS[name]

    def answer(_: ChatCall, right: str) -> str:
        remove(till)
        return right

    with OllamaServer(Script(till.oracle, {IMPLEMENT.title: [answer]})) as server:
        till.configure(server.base_url)
        code, out, err = till.run_here("solve", till.task)
    said = err[err.index("error: ") :]
    assert (code, "complete" in out, "this is a bug" in err) == (1, False, False), err
    assert word in said
    assert "  -> " in said
    assert list((till.home / "cache").glob("cra/worktrees/*/*")) == []
    if name in RECORDED:
        assert till.recorded().ending[0] == "failed"


def test_a_cache_folder_that_cannot_be_is_named_before_a_model_is_asked(
    till: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "blocked").write_text("")
    environment = till.environment() | {"XDG_CACHE_HOME": str(tmp_path / "blocked/cache")}
    monkeypatch.setattr(Project, "environment", lambda _: environment)
    monkeypatch.chdir(till.top)
    with OllamaServer(Script(till.oracle)) as server:
        till.configure(server.base_url)
        code, out, err = till.run_here("solve", till.task)
        asked = len(server.requests)
    assert (code, asked, "complete" in out, "this is a bug" in err) == (2, 0, False, False), err
    assert f"{tmp_path}/blocked/cache" in err
