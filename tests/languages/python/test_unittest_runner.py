import pytest

from clean_room_agent.languages.python.unittest_runner import UnittestRunner, read_unittest

OUTPUT = "test_a (t.Box.test_a) ... skipped {}\n\n" + "-" * 70 + "\nRan 1 test in 0.001s\n\nOK (skipped=1)\n"


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("python -m unittest", "python -m unittest -v"),
        ("python3 -m unittest discover -s t", "python3 -m unittest discover -v -s t"),
        ("python3 -m unittest discover", "python3 -m unittest discover -v"),
        ("python3 -m unittest discovery", "python3 -m unittest -v discovery"),
        ("python -m unittest -v", "python -m unittest -v"),
        ("python -m unittest -q a", "python -m unittest -q a"),
        ("python -m unittest a && python -m unittest b", "python -m unittest a && python -m unittest b"),
        ("pytest", "pytest"),
    ],
)
def test_unittest_is_asked_for_names(command: str, asked: str) -> None:
    assert UnittestRunner().asked(command) == asked


@pytest.mark.parametrize("reason", ["'no'", '"it\'s"', "", "é"])
def test_a_skipped_test_is_one_however_its_reason_is_quoted(reason: str) -> None:
    reading = read_unittest(OUTPUT.format(reason))
    assert reading is not None
    assert set(reading.report.outcomes.values()) <= {"skipped"}
    assert not reason or reading.report.outcomes == {"t.Box.test_a": "skipped"}


NOSE2 = """\
test_u.A.test_c ... ok
test_a.test_b ... FAIL
test_a.test_pairs:2
1, 2 ... ERROR

======================================================================
FAIL: test_a.test_b
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/r/test_a.py", line 4, in test_b
    assert 0
AssertionError

======================================================================
ERROR: test_a.test_pairs:2
1, 2
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/r/test_a.py", line 8, in test_pairs
    one()
NameError: one

----------------------------------------------------------------------
Ran 3 tests in 0.000s

FAILED (failures=1, errors=1)
"""


def test_functions_are_named_as_nose2_does() -> None:
    reading = read_unittest(NOSE2)
    assert reading is not None
    assert (reading.report.outcomes, reading.report.named, reading.report.passed) == (
        {"test_u.A.test_c": "passed", "test_a.test_b": "failed", "test_a.test_pairs:2": "error"},
        True,
        1,
    )
    assert [failure.message.strip() for failure in reading.failures] == ["AssertionError", "NameError: one"]


def test_failures_that_are_counted_and_not_named_leave_the_run_incomplete() -> None:
    text = "Ran 2 tests in 0.1s\n\nFAILED (failures=1)\n"
    reading = read_unittest(text)
    assert reading is not None
    assert not reading.report.whole
    assert (
        reading.report.problem == "unittest names no failing test, and its last line says FAILED (failures=1)"
    )
