"""What a bug report takes out of texts and values."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.db.raw.samples import SAMPLES

from clean_room_agent.app.bug_report import (
    HIDDEN,
    TOLD_TEXTS,
    cleaner,
    named_secrets,
    without_named,
    without_texts,
)
from clean_room_agent.json_values import to_shown
from clean_room_agent.redaction import Redactor
from clean_room_agent.workspace import Workspace


def test_places_of_the_user_are_taken_out(tmp_path: Path) -> None:
    clean = cleaner(Redactor(lambda: b"k" * 32, ("hunter2-hunter2",)), Workspace(repo=tmp_path))
    text = clean(f"{tmp_path}/a.py {Path.home()}/b.py {tmp_path}-other hunter2-hunter2")
    assert "<repository>/a.py" in text
    assert "~/b.py" in text
    assert "-other" in text
    assert "hunter2" not in text


def test_what_has_a_secret_s_name_is_hidden_at_any_depth() -> None:
    value = {
        "api_key": "abc",
        "api_key_env": "KEY",
        "extra_body": [{"password": "x", "top_k": 3}],
        "token": "",
    }
    assert without_named("", value) == {
        "api_key": HIDDEN,
        "api_key_env": "KEY",
        "extra_body": [{"password": HIDDEN, "top_k": 3}],
        "token": "",
    }


def test_the_keys_of_all_servers_are_known_as_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    for name, value in (("ONE", "1"), ("TWO", "2"), ("THREE", "3")):
        monkeypatch.setenv(name, value)
    workspace = Workspace(repo=tmp_path)
    workspace.create()
    workspace.config.write_text(
        '[models]\napi_key_env = "ONE"\n[models.servers.coding]\nbase_url = "http://127.0.0.1:2"\napi_key_env = "TWO"\n'
    )
    assert named_secrets(workspace) == ("1", "2")


def texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """(key, text) of each text in a value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner, key)
    elif isinstance(value, str):
        yield key, value


def test_of_the_record_only_listed_texts_are_told() -> None:
    rows = [to_shown(row) for _, row in SAMPLES]
    told = without_texts("", rows)
    hidden = [(key, text) for key, text in texts(rows) if key not in TOLD_TEXTS and len(text) > 20]
    assert hidden
    said = json.dumps(told)
    assert [pair for pair in hidden if pair[1] in said] == []
    assert "(20 characters)" not in json.dumps([key for key, _ in texts(told)])
