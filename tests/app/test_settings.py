"""Flags over the repository's file over the user's."""

import re
from pathlib import Path

import pytest

from clean_room_agent.app.settings import Overrides, Settings, load_settings, user_config_file
from clean_room_agent.errors import ConfigError, UsageError

BUDGET = "[budget]\ncontext_window = 8192\nreserved_tokens = 2048\n"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    path = tmp_path / "config.toml"
    path.write_text(BUDGET)
    return path


def test_a_flag_goes_before_the_file_and_the_file_before_the_user(config: Path) -> None:
    own = user_config_file()
    own.parent.mkdir(parents=True)
    own.write_text("[budget]\ncontext_window = 4096\n[solve]\nmax_attempts = 7\n")
    own.chmod(0o600)
    settings = load_settings(config, Overrides(reserved_tokens=1000))
    assert (settings.budget.context_window, settings.budget.reserved_tokens) == (8192, 1000)
    assert settings.data["solve"]["max_attempts"] == 7
    assert "solve" not in load_settings(config, Overrides(), user_wide=False).data


def test_a_budget_file_excludes_its_two_flags(config: Path, tmp_path: Path) -> None:
    given = tmp_path / "budget.toml"
    given.write_text("context_window = 100\nreserved_tokens = 10\n")
    settings = load_settings(config, Overrides(budget_config=given))
    assert settings.budget.context_window == 100
    with pytest.raises(UsageError, match="--budget-config excludes"):
        load_settings(config, Overrides(budget_config=given, context_window=1))


def test_a_required_value_that_is_missing_is_named_with_its_flag(config: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[solve\] max_attempts") as caught:
        load_settings(config, Overrides()).require("solve")
    assert "--max-attempts" in caught.value.hint


def test_an_unknown_table_is_refused(config: Path) -> None:
    config.write_text(BUDGET + "[bugdet]\n")
    with pytest.raises(ConfigError, match="bugdet"):
        load_settings(config, Overrides())


def test_a_file_is_needed_unless_flags_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    with pytest.raises(ConfigError):
        load_settings(tmp_path / "absent.toml", Overrides())
    assert load_settings(tmp_path / "absent.toml", Overrides(samples=2), optional=True).data["solve"] == {
        "samples": 2
    }


def test_settings_in_a_message_tell_no_value() -> None:
    settings = Settings(source="config.toml", data={"models": {"extra_body": {"token": "my own"}}})
    assert repr(settings) == "Settings(source='config.toml')"


def test_a_missing_value_is_told_with_a_file_that_exists(config: Path, tmp_path: Path) -> None:
    absent, own = tmp_path / "absent.toml", user_config_file()
    own.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    own.write_text("[models]\ncoding = 'c'\n")
    with pytest.raises(ConfigError, match=rf"{re.escape(str(own))}: \[models\] base_url"):
        load_settings(absent, Overrides()).require("models")
    for emptied in ("", "[models]\n", "[models]\n[models.overrides]\n"):
        own.write_text(emptied)
        with pytest.raises(ConfigError, match=f"no configuration at {re.escape(str(absent))}"):
            load_settings(absent, Overrides())
