"""Values of a new configuration from flags and from the user's own file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from testing.repositories import git, init_repository, write
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import OpenAiServer

from clean_room_agent.app.new_config import Given, gather, given_values, offer_ignored, trust_workspace
from clean_room_agent.errors import ModelNotFound, UsageError
from clean_room_agent.git.repository import open_repository
from clean_room_agent.git.worktree import included_files
from clean_room_agent.workspace import Workspace

NOWHERE = "http://127.0.0.1:1"
FLAGS = {"coding": "coder:3b", "reasoning": "thinker:4b", "context_window": 16_384, "sandbox": "none"}

BELOW = {
    "models": {"coding": "mine", "base_url": "127.0.0.1:8080"},
    "budget": {"context_window": 4096, "reserved_tokens": 512},
    "testing": {"test_command": "pytest"},
    "sandbox": {"mode": "bwrap"},
}


def given(below: dict[str, Any], **flags: Any) -> Given:
    names = (
        "base_url", "provider", "api_key_env", "coding", "reasoning", "test_command", "context_window",
        "reserved_tokens", "sandbox",
    )  # fmt: skip
    return given_values(below, **{**dict.fromkeys(names), **flags})


def test_a_flag_goes_before_the_user_s_file() -> None:
    found = given(BELOW, coding="flag", reserved_tokens=0)
    assert (found.coding, found.reserved_tokens, found.context_window) == ("flag", 0, 4096)
    assert (found.test_command, found.sandbox) == ("pytest", "bwrap")
    assert found.server.base_url == "http://127.0.0.1:8080"


def test_what_nobody_says_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "box:1")
    found = given({})
    assert (found.coding, found.context_window, found.server.base_url) == (None, None, None)
    assert found.server.ollama_host == "box:1"


def test_there_must_be_a_folder_to_trust(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no"):
        trust_workspace(Workspace(repo=tmp_path))


class Consent:
    """Whoever takes what was found, and keeps what is told."""

    def __init__(self, *, asks: bool = False) -> None:
        self.asks = asks
        self.missing: list[str] = []
        self.found_more = False
        self.told: list[str] = []

    def settle(self, flag: str, what: str, given: Any, found: Any, choices: Sequence[str] = ()) -> Any:
        value = given if given is not None else found
        if value is None:
            self.missing.append(f"{flag} ({what})")
        return value

    def agrees(self, what: str) -> bool:
        return True

    def tell(self, text: str) -> None:
        self.told.append(text)


def command_of(top: Path, files: Mapping[str, str], answers: Consent) -> str:
    write(init_repository(top), files)
    found = gather(Workspace(repo=top), given({}, **FLAGS, base_url=NOWHERE), answers)
    return str(found["testing"]["test_command"])


def test_each_way_to_run_tests_is_told_and_the_most_direct_is_taken(tmp_path: Path) -> None:
    files = {
        "tests/test_a.py": "def test_a(): pass\n",
        "package.json": '{"scripts": {"test": "node --test"}}',
    }
    answers = Consent()
    assert command_of(tmp_path, files, answers) == "python3 -m pytest -q"
    assert "also found: npm test" in "\n".join(answers.told)


def test_where_there_are_no_tests_it_is_told_what_can_be_done(tmp_path: Path) -> None:
    answers = Consent()
    with pytest.raises(UsageError, match="--test-command"):
        command_of(tmp_path, {"a.py": "x = 1\n"}, answers)
    told = "\n".join(answers.told)
    assert "no tests were found here" in told
    assert 'accept = "untested"' in told


GENERATED = {
    ".gitignore": "_v.py\nmade*\n",
    "p/__init__.py": "from ._v import v\n",
    "p/_v.py": "v = 1\n",
    "a.js": "require('./made [1].js')\n",
    "made [1].js": "",
}


def test_ignored_files_that_code_imports_are_offered_to_a_person_alone(tmp_path: Path) -> None:
    write(init_repository(tmp_path), GENERATED)
    workspace, answers, include = Workspace(repo=tmp_path), Consent(), tmp_path / ".worktreeinclude"
    offer_ignored(workspace, answers)
    assert not include.exists()
    assert "put into .worktreeinclude, a line each: made [1].js, p/_v.py" in answers.told[-1]
    include.write_text("mine")
    offer_ignored(workspace, Consent(asks=True))
    offer_ignored(workspace, Consent(asks=True))
    assert include.read_text() == "mine\n/made \\[1\\].js\n/p/_v.py\n"
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "Begin")
    assert included_files(open_repository(tmp_path)) == ("made [1].js", "p/_v.py")


@pytest.mark.parametrize("kind", [OllamaServer, OpenAiServer])
@pytest.mark.parametrize("flag", ["coding", "reasoning"])
def test_a_given_model_that_the_server_lacks_is_the_fault_that_is_told(
    kind: type[OllamaServer | OpenAiServer], flag: str, tmp_path: Path
) -> None:
    init_repository(tmp_path)
    flags = {**FLAGS, "context_window": None, "test_command": "pytest", flag: "nosuch:7b"}
    answers = Consent()
    with kind([]) as server, pytest.raises(ModelNotFound, match="does not have the model 'nosuch:7b'"):
        gather(Workspace(repo=tmp_path), given({}, base_url=server.base_url, **flags), answers)
    assert "coder:3b, thinker:4b" in answers.told[0]
