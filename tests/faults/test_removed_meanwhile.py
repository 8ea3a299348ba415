"""Somebody removes, in mid-run, what the run stands on: it ends with a clear word, and never as complete without a record."""

from pathlib import Path

import pytest
from testing.faults.removals import REMOVALS
from testing.runs.solving import Project, Script
from testing.servers.ollama_script import ChatCall
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.execute.implement import IMPLEMENT

RECORDED = ("work tree", "git's objects", "git's notes of work trees")
"""Removed, it leaves the record, which then knows how the run ended."""
SOME = (*RECORDED, "record", "record, another in its place", "session", "repository")


@pytest.mark.parametrize("name", SOME)
def test_a_run_whose_ground_is_removed_says_what_is_gone(till: Project, name: str) -> None:
    """`python -m benchmarks.faults removed` tries all of them at three moments."""
    remove, word = REMOVALS[name]
    done = []

    def answer(_: ChatCall, right: str) -> str:
        remove(till)
        done.append(name)
        return right

    with OllamaServer(Script(till.oracle, {IMPLEMENT.title: [answer]})) as server:
        till.configure(server.base_url)
        code, out, err = till.run_here("solve", till.task)
    said = err[err.index("error: ") :]
    assert done == [name]
    assert (code, "complete" in out, "this is a bug" in err) == (1, False, False), err
    assert word in said
    assert "  -> " in said
    assert list((till.home / "cache").glob("cra/worktrees/*/*")) == []
    if name in RECORDED:
        assert till.recorded().ending[0] == "failed"


@pytest.mark.parametrize("name", ["a file", "below a file", "not to be written"])
def test_a_cache_folder_that_cannot_be_is_named_before_a_model_is_asked(
    till: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A folder that is not there is made, as in every run here; a relative one is in `tests/app/test_wiring.py`."""
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    place = {
        "a file": str(blocked),
        "below a file": str(blocked / "cache"),
        "not to be written": "/proc/self",
    }[name]
    environment = till.environment() | {"XDG_CACHE_HOME": place}
    monkeypatch.setattr(Project, "environment", lambda _: environment)
    monkeypatch.chdir(till.top)
    with OllamaServer(Script(till.oracle)) as server:
        till.configure(server.base_url)
        code, out, err = till.run_here("solve", till.task)
        asked = len(server.requests)
    assert (code, asked, "complete" in out, "this is a bug" in err) == (2, 0, False, False), err
    assert "XDG_CACHE_HOME" in err
    assert place in err
