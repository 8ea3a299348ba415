"""The configuration that `cra init` writes: what is needed, with comments; and that with every key. Both load again."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clean_room_agent.app.config_values import render_config
from clean_room_agent.app.settings import TABLES, Overrides, Settings, load_settings
from clean_room_agent.config import ConfigSlice, keys_of, load_slice
from clean_room_agent.errors import ConfigError

VALUES: dict[str, dict[str, Any]] = {
    "models": {"base_url": "http://127.0.0.1:11434", "coding": "coder:3b", "reasoning": "thinker:4b"},
    "budget": {"context_window": 32_768, "reserved_tokens": 8_192},
    "solve": {"max_attempts": 3, "max_refinement_loops": 2},
    "testing": {"test_command": 'pytest -q -k "a \\ b"'},
}


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(render_config(VALUES), encoding="utf-8")
    return path


def load(path: Path, **overrides: Any) -> Settings:
    return load_settings(path, Overrides(**overrides))


def keys(kind: type[ConfigSlice]) -> Iterator[str]:
    for name, key in keys_of(kind).items():
        yield name
        if key.table is not None:
            yield from keys(key.table)


def test_what_is_written_loads_again_with_the_values_given(written: Path) -> None:
    settings = load(written)
    settings.require(*TABLES)
    assert settings.models.coding == "coder:3b"
    assert settings.budget.context_window == 32_768
    assert settings.testing.test_command == VALUES["testing"]["test_command"]


def test_every_value_that_was_not_given_is_the_default_of_its_field(written: Path) -> None:
    settings = load(written)
    for name, kind in TABLES.items():
        bare = load_slice(VALUES, name, kind, source=name)
        assert getattr(settings, name) == bare, name


@pytest.mark.parametrize(
    "extra",
    [{"min_p": 0.1}, {"chat_template_kwargs": {"enable_thinking": True}}, {"a": 1, "b": {"c": [1, 2]}}],
)
def test_a_free_table_may_hold_tables(extra: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(render_config({**VALUES, "models": {**VALUES["models"], "extra_body": extra}}))
    settings = load(path)
    assert settings.models.extra_body == extra
    assert settings.budget.context_window == 32_768


@pytest.mark.parametrize("table", TABLES)
def test_every_key_stands_in_the_file_even_where_it_has_no_value(table: str) -> None:
    text = render_config(None)
    missing = [key for key in keys(TABLES[table]) if key not in text]
    assert not missing


@pytest.mark.parametrize("table", TABLES)
def test_every_key_has_its_comment(table: str) -> None:
    text = " ".join(render_config(None).replace("\n#", " ").split())
    for key, about in keys_of(TABLES[table]).items():
        described = about.description
        assert described, f"[{table}] {key} has no description"
        assert " ".join(described.split()) in text, key


def test_a_file_without_any_value_is_still_toml() -> None:
    assert set(tomllib.loads(render_config(None))) == set(TABLES)
    assert set(tomllib.loads(render_config({}))) == {"models", "budget", "solve", "testing"}


def test_only_what_is_required_or_differs_is_written() -> None:
    given = {
        **VALUES,
        "models": {**VALUES["models"], "provider": "ollama", "parallel": 3, "temperature": {"coding": 0.0}},
        "sandbox": {"mode": "bwrap"},
        "worktree": {"link": [".venv", "venv", "node_modules"]},
    }
    assert tomllib.loads(render_config(given)) == {
        **VALUES,
        "models": {**VALUES["models"], "parallel": 3},
        "sandbox": {"mode": "bwrap"},
    }
    text = render_config(given)
    assert next(line for line in text.splitlines() if "parallel" in line).partition("# ")[2]


def test_a_default_is_written_where_the_user_s_own_file_has_another_value() -> None:
    given = {**VALUES, "models": {**VALUES["models"], "parallel": 2, "retries": 5}}
    below = {"models": {"parallel": 7, "retries": 5, "coding": "coder:3b"}}
    text = render_config(given, below)
    written = tomllib.loads(text)["models"]
    assert (written["parallel"], "retries" in written, "coding" in written) == (2, False, False)
    assert '# coding = "coder:3b"' in text


def test_a_flag_speaks_for_the_models_that_have_a_window_of_their_own(written: Path) -> None:
    written.write_text(
        written.read_text() + "\n[budget.coding]\ncontext_window = 4096\nreserved_tokens = 1024\n"
    )
    assert load(written).budget.coding is not None
    assert load(written, context_window=9_000).budget.coding is None


def test_a_reserve_as_large_as_the_window_is_refused(written: Path) -> None:
    with pytest.raises(ConfigError, match="leaves nothing"):
        load(written, context_window=1_000, reserved_tokens=1_000)
