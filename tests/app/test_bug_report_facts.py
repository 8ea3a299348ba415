"""Facts for a bug report, without secrets."""

from pathlib import Path

import pytest

from clean_room_agent.app.bug_report_facts import HIDDEN, OUR_NAME, named_secrets, without_named
from clean_room_agent.workspace import Workspace


def test_what_has_a_secret_s_name_is_hidden_at_any_depth() -> None:
    value = {
        "models": {"api_key": "abc", "api_key_env": "KEY", "extra_body": [{"password": "x", "top_k": 3}]}
    }
    assert without_named("", value) == {
        "models": {
            "api_key": HIDDEN,
            "api_key_env": "KEY",
            "extra_body": [{"password": HIDDEN, "top_k": 3}],
        }
    }


def test_an_empty_secret_says_so() -> None:
    assert without_named("token", "") == ""


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("raw.sqlite-wal", True),
        (".gitignore", True),
        ("session_4e48237c-eefd-4702-a5eb-31ca33c169d1.sqlite", True),
        ("cra-bug-report-4e48237c.zip", True),
        ("round-half-up.toml", False),
        ("session_fix-the-bill.sqlite", False),
        ("raw.sqlite.mine", False),
        ("rawsqlite", False),
    ],
)
def test_names_of_the_program_s_own_words_are_told(name: str, known: bool) -> None:
    assert bool(OUR_NAME.fullmatch(name)) == known


def test_the_keys_of_all_servers_are_known_as_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    workspace = Workspace(repo=tmp_path)
    workspace.create()
    workspace.config.write_text(
        '[models]\napi_key_env = "ONE"\n[models.servers.coding]\nbase_url = "http://127.0.0.1:2"\napi_key_env = "TWO"\n'
    )
    assert named_secrets(workspace, {"ONE": "1", "TWO": "2", "THREE": "3"}) == ("1", "2")
