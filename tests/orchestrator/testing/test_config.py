import pytest

from clean_room_agent.config import load_slice
from clean_room_agent.errors import ConfigError
from clean_room_agent.orchestrator.testing.config import TestingConfig, WorktreeConfig


def test_only_the_test_command_is_required() -> None:
    read = load_slice({"testing": {"test_command": "pytest -q"}}, "testing", TestingConfig, source="c")
    assert (read.timeout, read.accept, read.step_test_command) == (120.0, "all-pass", None)
    with pytest.raises(ConfigError, match=r"test_command: required"):
        load_slice({}, "testing", TestingConfig, source="c")


@pytest.mark.parametrize(
    ("key", "value"), [("timeout", 0), ("accept", "most"), ("test_command", ""), ("time_out", 3)]
)
def test_wrong_values_are_named(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=key):
        load_slice({"testing": {"test_command": "x", key: value}}, "testing", TestingConfig, source="c")


def test_the_worktree_brings_the_usual_folders() -> None:
    read = load_slice({}, "worktree", WorktreeConfig, source="c")
    assert (read.link, read.without_sandbox) == ((".venv", "venv", "node_modules"), "copy")


def test_every_key_has_words_for_the_written_file() -> None:
    for kind in (TestingConfig, WorktreeConfig):
        assert all(field.description for field in kind.model_fields.values())
