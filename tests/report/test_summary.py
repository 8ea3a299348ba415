"""The last screen: what it claims."""

import io

import pytest
from msgspec.structs import replace
from rich.console import Console

from clean_room_agent.artifacts.outcomes import OrchestratorResult, RunStatus
from clean_room_agent.report.summary import NONE_TURNED, Ending, RunSummary, TestCounts, TestsTouched, render

RED = TestCounts(passed=2, failed=1, known=True, returncode=1)
GREEN = TestCounts(passed=3, failed=0, known=True, returncode=0)
NONE = TestCounts(passed=0, failed=0, known=True, returncode=5)
UNREAD = TestCounts(passed=0, failed=0, known=False, returncode=0)
SUMMARY = RunSummary(
    result=OrchestratorResult(task_id="0" * 32, status=RunStatus.COMPLETE, branch="cra/00000000"),
    files=(),
    touched=TestsTouched(),
    before=RED,
    after=GREEN,
    turned_green=1,
    restored=None,
    calls=1,
    tokens=1,
    seconds=1.0,
    fullest=(0, 0),
    carries_uncommitted=False,
)


def shown(summary: RunSummary) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(render(summary))
    written = console.file
    assert isinstance(written, io.StringIO)
    return written.getvalue()


@pytest.mark.parametrize(
    ("changes", "says", "warns"),
    [
        ({}, "complete: the tests pass", False),
        ({"before": GREEN, "turned_green": 0}, "complete: the tests pass", True),
        ({"before": UNREAD, "after": UNREAD, "turned_green": None}, "complete: the tests pass", False),
        ({"before": NONE, "after": NONE, "turned_green": 0}, "complete: nothing was tested", False),
        ({"before": NONE, "after": GREEN, "turned_green": 3}, "complete: the tests pass", False),
    ],
    ids=["goal reached", "nothing turned", "unread", "no tests", "first tests"],
)
def test_no_more_is_claimed_than_the_tests_show(changes: dict[str, object], says: str, warns: bool) -> None:
    text = shown(replace(SUMMARY, **changes))
    assert says in text
    assert (NONE_TURNED in text) is warns


@pytest.mark.parametrize(
    ("changes", "told", "not_told"),
    [
        ({}, ["cra apply 00000000", "git merge cra/00000000"], ["--resume"]),
        ({"carries_uncommitted": True}, ["cra apply 00000000"], ["git merge"]),
        (
            {"result": replace(SUMMARY.result, status=RunStatus.FAILED, branch="")},
            ["cra solve --resume 00000000 --hint TEXT  try again"],
            ["cra apply", "git merge"],
        ),
        (
            {"result": replace(SUMMARY.result, status=RunStatus.PARTIAL)},
            ["cra solve --resume 00000000  ", "--hint TEXT", "git merge"],
            [],
        ),
    ],
    ids=["complete", "with uncommitted work", "failed", "partial"],
)
def test_the_next_commands_are_those_that_fit(
    changes: dict[str, object], told: list[str], not_told: list[str]
) -> None:
    text = shown(replace(SUMMARY, **changes))
    assert [line for line in told if line not in text] == []
    assert [line for line in not_told if line in text] == []


def test_why_a_run_failed_and_what_to_do_stand_below_how_it_ended() -> None:
    failed = replace(SUMMARY.result, status=RunStatus.FAILED, branch="")
    line, advice = "2 of 2 attempts at steps were refused (NO_MATCH)", "`cra show 00000000` shows them"
    text = shown(replace(SUMMARY, result=failed, ending=Ending(lines=(line,), advice=advice)))
    assert f"\n  {line}\n  {advice}\n" in text
