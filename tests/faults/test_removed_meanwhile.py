"""Somebody removes, in mid-run, what the run stands on: it ends with a clear word, and never as complete without a record."""

from pathlib import Path

import pytest
from testing.faults.removals import REMOVALS
from testing.runs.solving import Project, Script
from testing.servers.ollama_script import ChatCall
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.execute.prompts.implement import IMPLEMENT
from clean_room_agent.execute.prompts.meta_plan import META_PLAN


@pytest.mark.parametrize(
    ("name", "title"),
    [("work tree", META_PLAN.title), *((name, IMPLEMENT.title) for name in sorted(REMOVALS))],
)
def test_a_run_whose_ground_is_removed_says_what_is_gone(till: Project, name: str, title: str) -> None:
    remove, word = REMOVALS[name]
    done = []

    def answer(_: ChatCall, right: str) -> str:
        remove(till)
        done.append(name)
        return right

    with OllamaServer(Script(till.oracle, {title: [answer]})) as server:
        till.configure(server.base_url)
        code, out, err = till.run_here("solve", till.task)
    said = err[err.index("error: ") :]
    assert done == [name]
    assert (code, "complete" in out, "this is a bug" in err) == (1, False, False), err
    assert word in said
    assert "  -> " in said
    assert list((till.home / "cache").glob("cra/worktrees/*/*")) == []


@pytest.mark.parametrize("name", ["work tree", "git's objects", "git's notes of work trees"])
def test_the_record_knows_of_a_run_whose_work_tree_was_removed(till: Project, name: str) -> None:
    def answer(_: ChatCall, right: str) -> str:
        REMOVALS[name][0](till)
        return right

    with OllamaServer(Script(till.oracle, {IMPLEMENT.title: [answer]})) as server:
        till.configure(server.base_url)
        till.run_here("solve", till.task)
    assert till.recorded().ending[0] == "failed"


@pytest.mark.parametrize(
    "name", ["a file", "below a file", "a missing folder", "relative", "not to be written"]
)
def test_a_cache_folder_that_cannot_be_is_named_before_a_model_is_asked(
    till: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    place = {
        "a file": str(blocked),
        "below a file": str(blocked / "cache"),
        "a missing folder": str(tmp_path / "not/yet"),
        "relative": "cache",
        "not to be written": "/proc/self",
    }[name]
    environment = till.environment() | {"XDG_CACHE_HOME": place}
    monkeypatch.setattr(Project, "environment", lambda _: environment)
    monkeypatch.chdir(till.top)
    with OllamaServer(Script(till.oracle)) as server:
        till.configure(server.base_url)
        code, out, err = till.run_here("solve", till.task)
        asked = len(server.requests)
    if name in {"a missing folder", "relative"}:
        assert (code, (till.top / "cache").exists()) == (0, False), err
        return
    assert (code, asked, "complete" in out, "this is a bug" in err) == (2, 0, False, False), err
    assert "XDG_CACHE_HOME" in err
    assert place in err
