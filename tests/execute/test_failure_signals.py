import pytest

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.artifacts.plans import MAX_MESSAGE
from clean_room_agent.execute.failure_signals import failure_signals, words_of

FAILED, REFUSED = AttemptOutcome.TESTS_FAILED, AttemptOutcome.REFUSED


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
