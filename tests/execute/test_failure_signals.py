"""Failures read from what real runners say: the recorded reports of four, and pytest's as its reader gives them."""

from pathlib import Path

import pytest

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.artifacts.plans import MAX_MESSAGE
from clean_room_agent.execute.failure_signals import failure_signals, words_of
from clean_room_agent.orchestrator.testing.failure_reports import SourceTree, describe
from clean_room_agent.orchestrator.testing.python_reports import read_report
from clean_room_agent.orchestrator.testing.results import Failure
from clean_room_agent.orchestrator.testing.script_reports import read_script_reports
from clean_room_agent.orchestrator.testing.test_commands import clear_guard_folder, guard_folder

RECORDED = Path(__file__).parents[1] / "assets" / "runner_reports"
FAILED, REFUSED = AttemptOutcome.TESTS_FAILED, AttemptOutcome.REFUSED
JUNIT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" errors="1" failures="2" skipped="0" tests="3">
<testcase classname="tests.test_a" name="test_sum" file="tests/test_a.py" line="0" time="0.001"><failure message="assert 3 == 6&#10; +  where 3 = total([1, 2])">def test_sum():
&gt;       assert total([1, 2]) == 6
E       assert 3 == 6
E        +  where 3 = total([1, 2])

tests/test_a.py:5: AssertionError</failure></testcase>
<testcase classname="tests.test_a" name="test_key" file="tests/test_a.py" line="9" time="0.001"><failure message="KeyError: 'x'">    def test_key():
&gt;       look({}, 'x')

tests/test_a.py:12:
till/look.py:2: in look
    return table[name]
E   KeyError: 'x'

till/look.py:2: KeyError</failure></testcase>
<testcase classname="" name="tests.test_b" time="0.000"><error message="collection failure">tests/test_b.py:1: in &lt;module&gt;
    from till.view import view
E     File "/tree/till/view.py", line 3
E       def view(:
E                ^
E   SyntaxError: invalid syntax</error></testcase>
</testsuite></testsuites>
"""


def told(failures: tuple[Failure, ...], tree: Path) -> tuple[FailingTest, ...]:
    return tuple(describe(failure, (Path("/tree"),), SourceTree(tree))[0] for failure in failures)


def categories(tests: tuple[FailingTest, ...]) -> dict[str, str]:
    """By the end of the test's name."""
    signals = failure_signals(FAILED, "newly failing", newly_failing=tests)
    return {one.source.rpartition(" > ")[2].rpartition("::")[2]: one.category for one in signals}


@pytest.mark.parametrize(
    ("runner", "expected"),
    [
        ("jest", {"fails": "test_failure", "b.test.js": "test_failure"}),
        ("vitest", {"fails": "test_failure", "b.test.js": "test_failure"}),
        ("mocha", {"fails": "test_failure", '"before all" hook for "never"': "test_failure"}),
        ("node", {"fails": "test_failure"}),
    ],
)
def test_a_recorded_report_gives_its_failures(runner: str, expected: dict[str, str], tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    clear_guard_folder(report)
    place = guard_folder(report) / f"{runner}-0"
    place.with_suffix(".started").touch()
    place.with_suffix(".json").write_text((RECORDED / f"{runner}.json").read_text())
    reading = read_script_reports(report)
    assert reading is not None
    found = categories(told(tuple(reading.failures), tmp_path))
    assert {name: category for name, category in found.items() if name in expected} == expected


def test_pytest_gives_assertions_other_errors_in_tests_and_files_that_do_not_compile(tmp_path: Path) -> None:
    report = tmp_path / "results.xml"
    report.write_text(JUNIT, encoding="utf-8")
    tests = told(tuple(read_report(report, lambda _: True).failures), tmp_path)
    signals = failure_signals(FAILED, "", newly_failing=tests)
    assert [one.category for one in signals] == ["test_failure", "test_failure", "compile_error"]
    assert "assert 3 == 6" in signals[0].message
    assert signals[1].message == "KeyError: 'x'"
    assert "SyntaxError: invalid syntax" in signals[2].message


@pytest.mark.parametrize(
    ("outcome", "detail", "messages", "category"),
    [
        (FAILED, "the test run was not whole", ("SyntaxError: invalid syntax",), "compile_error"),
        (FAILED, "exit code 1", ("src/a.ts(3,5): error TS2322: Type 'string' is not",), "compile_error"),
        (FAILED, "", ("Error: Cannot find module './tax'",), "compile_error"),
        (FAILED, "", ("ImportError: cannot import name 'tax'",), "compile_error"),
        (FAILED, "", ("AssertionError: 99 != 100",), "test_failure"),
        (FAILED, "newly failing: tests/test_a.py::test_sum", (), "test_failure"),
        (REFUSED, "block 1: NO_MATCH", (), "patch_failure"),
        (REFUSED, "till/money.py no longer parses", (), "compile_error"),
        (AttemptOutcome.TRUNCATED, "the answer was cut off before its end", (), "patch_failure"),
        (AttemptOutcome.INSUFFICIENT_CONTEXT, "WRONG_FILE: till/x.py", (), "patch_failure"),
        (FAILED, "", ("ZeroDivisionError: division by zero",), "runtime_error"),
        (AttemptOutcome.TIMED_OUT, "the tests took longer than 60 s", (), "runtime_error"),
        (FAILED, "it does not work", (), "unknown"),
        (FAILED, "", (), "unknown"),
    ],
)
def test_without_a_named_test_the_words_and_the_outcome_tell(
    outcome: AttemptOutcome, detail: str, messages: tuple[str, ...], category: str
) -> None:
    (signal,) = failure_signals(outcome, detail, messages=messages)
    assert (signal.category, signal.source) == (category, outcome.value)


def test_tests_that_fail_in_the_same_words_are_one_failure_and_a_silent_one_is_unknown() -> None:
    tests = (
        FailingTest(name="a", message="KeyError: 'x'"),
        FailingTest(name="b", message="KeyError: 'x'"),
        FailingTest(name="c"),
    )
    signals = failure_signals(FAILED, "", newly_failing=tests)
    assert [(one.source, one.category, one.message) for one in signals] == [
        ("a", "test_failure", "KeyError: 'x'"),
        ("c", "unknown", ""),
    ]


def test_the_values_stand_in_the_words_once_and_the_whole_has_a_bound() -> None:
    test = FailingTest(name="a", message="AssertionError", expected="6", actual="3")
    assert words_of(test) == "AssertionError\nexpected: 6\nactual: 3"
    assert words_of(FailingTest(name="a", statement="assert x == 6", expected="6", actual="3")) == (
        "assert x == 6\nactual: 3"
    )
    (signal,) = failure_signals(FAILED, "", newly_failing=(FailingTest(name="a", message="x" * 900),))
    assert len(signal.message) == MAX_MESSAGE
    assert signal.message.endswith("x [cut]")
