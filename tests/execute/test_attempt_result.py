import pytest
from inline_snapshot import snapshot

from clean_room_agent.artifacts.evidence import Evidence, FailingTest
from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.artifacts.plans import MAX_MESSAGE
from clean_room_agent.execute.attempt_result import (
    Goal,
    TestedAttempt,
    describe_result,
    failure_signals,
    words_of,
)


def test_a_result_tells_the_state_of_the_goal_and_the_words_of_what_fails_newly() -> None:
    tested = TestedAttempt(
        reason="newly failing: tests/t.py::test_sub",
        goals=(
            Goal(name="tests/t.py::test_add", state="passes now"),
            Goal(name="tests/t.py::test_mul", state="fails as before"),
            Goal(
                name="tests/t.py::test_neg",
                state="fails in another way",
                failing=FailingTest(name="tests/t.py::test_neg", expected="-1", actual="1"),
            ),
            Goal(name="tests/t.py::test_sum", state="passes now"),
        ),
        newly_failing=(
            FailingTest(
                name="tests/t.py::test_sub", statement="assert sub(3, 1) == 2", expected="2", actual="4"
            ),
        ),
        missing=("tests/u.py::test_u",),
        after=Evidence(),
    )
    assert describe_result(tested) == snapshot("""\
The edits were applied and tested: newly failing: tests/t.py::test_sub.
Goal tests (they failed before this step): 2 of 4 pass now.
- passes now: tests/t.py::test_add, tests/t.py::test_sum
- fails as before: tests/t.py::test_mul
- fails in another way: tests/t.py::test_neg
Did not run, and passed before: tests/u.py::test_u
Newly failing test: tests/t.py::test_sub
  failing line: assert sub(3, 1) == 2
  expected: 2
  actual: 4
Goal test, which fails in another way now: tests/t.py::test_neg
  expected: -1
  actual: 1\
""")


def test_a_run_whose_tests_have_no_names_tells_its_messages() -> None:
    tested = TestedAttempt(
        reason="exit 2, 0 before", goals=(), after=Evidence(messages=("error: expected `;`",))
    )
    assert describe_result(tested) == (
        "The edits were applied and tested: exit 2, 0 before.\nMessages:\n- error: expected `;`"
    )


def test_many_tests_stay_within_the_bound() -> None:
    names = [f"tests/test_{number}.py::test_{'x' * 150}" for number in range(60)]
    tested = TestedAttempt(
        reason="newly failing: many",
        goals=tuple(Goal(name=name, state="fails as before") for name in names),
        newly_failing=tuple(FailingTest(name=name, message="m" * 3_000 + name) for name in names),
        missing=tuple(names),
        after=Evidence(),
    )
    assert len(describe_result(tested, bound=4_096)) <= 4_096


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
        (FAILED, "missing: tests/test_a.py::test_sum[1]", (), "test_failure"),
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
