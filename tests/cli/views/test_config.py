"""Configured values, printed."""

import json
from typing import Any

import pytest

from clean_room_agent.app.config_values import ConfiguredValue
from clean_room_agent.cli.views.config import as_object, show, toml


def value(key: str, given: Any, source: Any, *, required: bool = False) -> ConfiguredValue:
    return ConfiguredValue(key=key, value=given, source=source, required=required, description="")


VALUES = (
    value("models.coding", "qwen", "repository"),
    value("solve.samples", 1, "default"),
    value("testing.test_command", None, "not set", required=True),
)


def test_each_value_with_where_it_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(VALUES, as_json=False, sources=True) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()][1:]
    assert lines == [
        'models.coding = "qwen"  repository',
        "solve.samples = 1  default",
        "testing.test_command =   not set, and required",
    ]


def test_json_keeps_types(capsys: pytest.CaptureFixture[str]) -> None:
    show(VALUES, as_json=True, sources=False)
    told = json.loads(capsys.readouterr().out)
    assert told == as_object(VALUES)
    assert told["solve.samples"] == {"value": 1, "source": "default"}


@pytest.mark.parametrize(
    ("given", "text"), [("a b", '"a b"'), (True, "true"), ([1, 2], "[1, 2]"), (0.5, "0.5")]
)
def test_values_are_written_as_toml(given: object, text: str) -> None:
    assert toml(given) == text
