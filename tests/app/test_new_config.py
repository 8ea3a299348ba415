"""Values of a new configuration from flags and from the user's own file."""

from pathlib import Path
from typing import Any

import pytest

from clean_room_agent.app.new_config import Given, given_values, trust_workspace
from clean_room_agent.errors import UsageError
from clean_room_agent.workspace import Workspace

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
