"""The last screen: what it claims."""

import io

import pytest
from msgspec.structs import replace
from rich.console import Console
from tests.db.raw.samples import run as sample_run

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.goals import GoalOutcome, GoalSource
from clean_room_agent.artifacts.outcomes import OrchestratorResult, RunStatus
from clean_room_agent.db.raw.passes import ValidationKind, ValidationRow
from clean_room_agent.db.raw.runs import OrchestratorRunRow
from clean_room_agent.report.summary import WOULD_HELP, Ending, RunSummary, render
from clean_room_agent.report.trace import RunTrace

RUN = replace(sample_run("0" * 32), base_commit="a" * 40, snapshot_commit="a" * 40)


def run_of(kind: ValidationKind, passed: int | None, *failing: str) -> ValidationRow:
    return ValidationRow(
        task_id=RUN.task_id,
        kind=kind,
        attempt_id=None,
        success=not failing,
        test_output="",
        failing_tests=tuple(FailingTest(name=name) for name in failing),
        tests_passed=passed,
        exit_code=len(failing),
        timestamp=RUN.timestamp,
    )


def traced(run: OrchestratorRunRow = RUN, *rows: ValidationRow) -> RunTrace:
    return RunTrace(task_id=run.task_id, run=run, passes=(), tests=rows, events=())


SUMMARY = RunSummary(
    result=OrchestratorResult(task_id="0" * 32, status=RunStatus.COMPLETE, branch="cra/00000000"),
    trace=traced(RUN, run_of("baseline", 2, "t.py::none"), run_of("final", 3)),
    files=(),
    calls=1,
    tokens=1,
    seconds=1.0,
)


def shown(summary: RunSummary, elsewhere: str = "") -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(render(summary, elsewhere))
    written = console.file
    assert isinstance(written, io.StringIO)
    return written.getvalue()


GREEN_GOAL = GoalOutcome(
    name="t.py::fill", source=GoalSource.STATED, trust="shown", before="[9, 0]", after="[9, 0, 0]", green=True
)
RED_GOAL = replace(GREEN_GOAL, name="t.py::none", after="[9]", green=False)
HINT = replace(GREEN_GOAL, source=GoalSource.WRITTEN, trust="hint")


def with_evidence(status: RunStatus, *evidence: GoalOutcome, reason: str = "") -> str:
    return shown(
        replace(SUMMARY, result=replace(SUMMARY.result, status=status, evidence=evidence, reason=reason))
    )


def test_the_first_line_says_which_test_shows_it_and_what_it_gave() -> None:
    text = with_evidence(RunStatus.COMPLETE, GREEN_GOAL)
    assert text.startswith("\ncomplete: shown by t.py::fill: [9, 0] before, [9, 0, 0] now  00000000\n")
    assert "goal" not in text, "it is told once"
    second = replace(GREEN_GOAL, name="t.py::more")
    text = with_evidence(RunStatus.COMPLETE, GREEN_GOAL, second)
    assert "[9, 0] before, [9, 0, 0] now (and by 1 more test)" in text


def test_red_tests_of_the_repository_are_told_if_nothing_else_is_green() -> None:
    red = replace(RED_GOAL, source=GoalSource.REPOSITORY, trust="proof")
    assert "red:" not in with_evidence(RunStatus.COMPLETE, GREEN_GOAL, red)
    assert "red: t.py::none" in with_evidence(RunStatus.PARTIAL, red)


@pytest.mark.parametrize("evidence", [(), (HINT,), (replace(HINT, green=False),)])
def test_an_unproven_result_says_what_would_help(evidence: tuple[GoalOutcome, ...]) -> None:
    text = with_evidence(RunStatus.UNPROVEN, *evidence, reason="nothing shows it")
    assert text.startswith("\nunproven  00000000\n  nothing shows it\n")
    assert WOULD_HELP in " ".join(text.split())
    assert "cra apply 00000000" in text
    assert "--resume" not in text


def test_what_a_model_guessed_is_offered_as_a_check() -> None:
    for check, quoted in (("f('a') == 'b'", "\"f('a') == 'b'\""), ('f("$a") == 1', "'f(\"$a\") == 1'")):
        text = with_evidence(RunStatus.UNPROVEN, replace(HINT, check=check), reason="nothing shows it")
        assert f"if this is what you want: `cra solve --check {quoted}`" in " ".join(text.split())


def test_where_a_goal_test_is_red_that_is_what_would_have_to_change() -> None:
    text = with_evidence(RunStatus.UNPROVEN, RED_GOAL, reason="still red")
    assert "--check" not in text
    assert "red: t.py::none" in text


@pytest.mark.parametrize(
    ("changes", "told", "not_told"),
    [
        ({}, ["cra apply 00000000", "git merge cra/00000000"], ["--resume"]),
        ({"trace": traced(replace(RUN, snapshot_commit="b" * 40))}, ["cra apply 00000000"], ["git merge"]),
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


def test_in_another_folder_each_command_of_the_summary_names_the_repository() -> None:
    failed = replace(SUMMARY.result, status=RunStatus.FAILED, branch="")
    advice = "`cra show 00000000` shows them; then `cra solve --resume 00000000`"
    unproven = replace(SUMMARY.result, status=RunStatus.UNPROVEN)
    for summary in (
        replace(SUMMARY, result=failed, ending=Ending(advice=advice)),
        replace(SUMMARY, result=unproven),
    ):
        text = shown(summary, "/a/till")
        assert text.count("cra ") == text.count("--repo /a/till") >= 3


def test_the_tests_are_told_before_and_after_and_with_the_old_tests() -> None:
    assert "tests   2 passed, 1 failed -> 3 passed, 0 failed\n" in shown(SUMMARY)
    rows = (run_of("baseline", None), run_of("restored", 2, "t.py::none"))
    text = shown(replace(SUMMARY, trace=traced(RUN, *rows)))
    assert "tests   exit 0 -> not run; with the tests restored 2 passed, 1 failed\n" in text
