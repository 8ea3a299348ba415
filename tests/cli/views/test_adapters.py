"""Adapters and their evaluations, printed."""

import json
from typing import Any

import pytest
from tests.training.test_serving import adapter

from clean_room_agent.cli.views.adapters import list_rows, tell
from clean_room_agent.db.raw.training import EvaluationRow
from clean_room_agent.training.deployment import Changed


def evaluation(*, passed: bool) -> EvaluationRow:
    return EvaluationRow(
        task_id="t",
        adapter_id=1,
        base_tag="base",
        example_count=300,
        metrics="{}",
        passed=passed,
        timestamp="2026-01-02T03:04:05Z",
    )


@pytest.mark.parametrize(
    ("evaluations", "words"), [((), "not evaluated"), ((False,), "not passed"), ((False, True), "passed")]
)
def test_the_newest_evaluation_is_told(
    evaluations: tuple[bool, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: Any = [(adapter("scope-v1", "/a"), tuple(evaluation(passed=each) for each in evaluations))]
    list_rows(rows, as_json=False)
    line = capsys.readouterr().out.rstrip()
    assert line.endswith(words)
    assert "scope-v1" in line


def test_no_adapters_name_the_command_that_makes_one(capsys: pytest.CaptureFixture[str]) -> None:
    list_rows([], as_json=False)
    assert "cra train" in capsys.readouterr().out
    list_rows([], as_json=True)
    assert json.loads(capsys.readouterr().out) == []


def test_a_change_names_both_tags(capsys: pytest.CaptureFixture[str]) -> None:
    tell(Changed(stage="scope", tag="scope-v2", replaced=""), as_json=False, note="restart it")
    told = capsys.readouterr()
    assert told.out == "scope: scope-v2 answers, in place of the base\n"
    assert told.err == "restart it\n"
