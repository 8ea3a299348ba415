import re
from typing import get_args

import msgspec
import pytest

from clean_room_agent.config import keys_of, load_slice
from clean_room_agent.errors import ConfigError
from clean_room_agent.orchestrator.recovery import TABLE
from clean_room_agent.orchestrator.run_config import (
    OrchestratorConfig,
    RecoveryConfig,
    Rule,
    SandboxConfig,
    SolveConfig,
    TestingConfig,
    WorktreeConfig,
)


def test_every_recovery_rule_can_be_switched_off_and_none_is_by_default() -> None:
    assert RecoveryConfig().rules == get_args(Rule)
    assert set(get_args(Rule)) == {name for name, _ in TABLE}
    assert RecoveryConfig(rules=()).rules == ()


def test_a_rule_that_there_is_not_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="rules"):
        msgspec.convert({"rules": ["retyr"]}, RecoveryConfig)


def test_how_often_a_step_is_tried_has_no_default() -> None:
    with pytest.raises(ConfigError) as caught:
        load_slice({}, "solve", SolveConfig, source="c")
    assert re.findall(r"(\w+): required", caught.value.message) == ["max_attempts", "max_refinement_loops"]


@pytest.mark.parametrize("key", ["max_parts", "max_steps_per_part", "max_calls", "max_tokens"])
def test_a_run_without_a_single_part_step_or_call_is_no_run(key: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=key):
        msgspec.convert({key: 0}, OrchestratorConfig)


def test_only_the_test_command_is_required() -> None:
    read = load_slice({"testing": {"test_command": "pytest -q"}}, "testing", TestingConfig, source="c")
    assert (read.timeout, read.accept, read.step_test_command) == (120.0, "goals", None)
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
        assert all(key.description for key in keys_of(kind).values())


def load(**values: object) -> SandboxConfig:
    return load_slice({"sandbox": values}, "sandbox", SandboxConfig, source="config.toml")


def test_a_sandbox_is_used_where_there_is_one_unless_it_is_said_otherwise() -> None:
    assert load().mode == "auto"


@pytest.mark.parametrize("path", ["/opt/data", "~/.config/tool", "~/"])
def test_what_else_may_be_read_is_named_from_the_top_or_from_home(path: str) -> None:
    assert load(read=[path]).read == (path,)


@pytest.mark.parametrize("path", ["data", "./data", "~other/data", "/opt/../etc", "~/../root", ""])
def test_a_path_that_leads_elsewhere_is_refused_and_named(path: str) -> None:
    with pytest.raises(ConfigError, match="neither absolute nor begins with ~/"):
        load(read=[path])


@pytest.mark.parametrize(
    ("name", "value"),
    [("mode", "docker"), ("memory_mb", -1), ("processes", -1), ("scratch_mb", 0), ("reed", ["/"])],
)
def test_values_beyond_their_bounds_and_unknown_keys_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        load(**{name: value})
