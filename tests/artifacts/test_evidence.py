"""How failing tests are described."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from testing.framed_items import framed_items

from clean_room_agent.artifacts.evidence import (
    LEAST_CHARACTERS,
    Evidence,
    FailingTest,
    StackFrame,
    describe_evidence,
    describe_tests,
    evidence_bound,
)

SPLIT = FailingTest(
    name="tests/test_money.py::test_split",
    message="assert [33, 33, 33] == [34, 33, 33]",
    path="till/money.py",
    line=7,
    statement="assert split(100, 3) == [34, 33, 33]",
    expected="[34, 33, 33]",
    actual="[33, 33, 33]",
    frames=(
        StackFrame(path="tests/helpers.py", line=3, function="check"),
        StackFrame(path="till/money.py", line=7, function="split"),
        StackFrame(path="till/bill.py", line=90, function="bill"),
    ),
)
NAMES = FailingTest(
    name="tests/test_names.py::test_names",
    statement="self.assertEqual(names(), {",
    expected="{\n  'a': 1,\n}",
    actual="{}",
)
BROKEN = FailingTest(
    name="tests/test_bill.py", message="ImportError: cannot import name 'bill'", path="till/bill.py", line=2
)


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("tests/test_a.py", True),
        ("web/cart.test.ts", True),
        ("unittest.loader._FailedTest.tests.test_a", True),
        ("tests/test_a.py::test_b", False),
        ("web/cart.test.ts > cart > adds", False),
        ("tests.test_a.ATest.test_b", False),
        ("adds two", False),
    ],
)
def test_a_name_may_stand_for_a_file_that_could_not_be_loaded(name: str, whole: bool) -> None:
    assert is_of_file(name) is whole


def test_the_file_of_a_module_that_could_not_be_loaded_is_meant() -> None:
    assert files_meant("unittest.loader._FailedTest.tests.test_a") == ("tests/test_a.py",)
    assert files_meant("tests/test_a.py") == ("tests/test_a.py",)


@pytest.mark.parametrize(
    ("name", "symbol", "is_its"),
    [
        ("tests/test_a.py::Case::test_x[1]", "Case.test_x", True),
        ("tests/test_a.py::test_x", "Case.test_x", False),
        ("tests/test_b.py::Case::test_x", "Case.test_x", False),
        ("tests.test_a.Case.test_x", "Case.test_x", True),
        ("test_x", "test_x", True),
        ("my_test_x", "test_x", False),
        ("tests/test_a.py", "Case.test_x", True),
        ("tests/test_b.py", "Case.test_x", False),
        ("unittest.loader._FailedTest.tests.test_a", "test_x", True),
    ],
)
def test_a_runners_name_is_that_of_a_definition_or_of_its_whole_file(
    name: str, symbol: str, is_its: bool
) -> None:
    assert names_test(name, "tests/test_a.py", symbol) is is_its


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("tests/test_a.py::TestB::test_c[1]", "tests/test_a.py"),
        ("tests/test_a.py", "tests/test_a.py"),
        ("web/cart.test.ts > cart > adds", "web/cart.test.ts"),
        ("tests.test_a.ATest.test_b", "tests.test_a.ATest"),
    ],
)
def test_tests_that_stand_together_share_a_group(name: str, group: str) -> None:
    assert group_of(name) == group


def evidence(*tests: FailingTest) -> Evidence:
    return Evidence(
        tests=tests, messages=tuple(line for test in tests for line in test.message.split("\n") if line)
    )


def same(number: int) -> FailingTest:
    return FailingTest(name=f"tests/test_x.py::test_{number}", message="NameError: name 'x' is not defined")


def test_each_test_has_its_line_its_values_and_its_place() -> None:
    assert describe_evidence(evidence(SPLIT, NAMES, BROKEN)) == snapshot("""\
Failing test: tests/test_money.py::test_split
  failing line: assert split(100, 3) == [34, 33, 33]
  expected: [34, 33, 33]
  actual: [33, 33, 33]
  at till/money.py:7 in split
Failing test: tests/test_names.py::test_names
  failing line: self.assertEqual(names(), {
  expected:
    {
      'a': 1,
    }
  actual: {}
Failing test: tests/test_bill.py
  error: ImportError: cannot import name 'bill'
  at till/bill.py:2\
""")


def test_tests_that_fail_in_the_same_way_share_a_block() -> None:
    assert describe_evidence(evidence(same(1), SPLIT, same(2), same(3))).startswith(
        "Failing test: tests/test_x.py::test_1\n  error: NameError: name 'x' is not defined\n"
        "  also fails in the same way: tests/test_x.py::test_2, tests/test_x.py::test_3\n"
        "Failing test: tests/test_money.py"
    )


def test_cases_of_one_test_are_named_by_their_parameters() -> None:
    names = ("test_a[x]", "test_a[y, z]", "test_a", "test_b[x]", "test_b[[1]]", "Case::test_b[x]")
    told = describe_evidence(
        evidence(*(FailingTest(name=f"tests/test_x.py::{name}", message="NameError: x") for name in names))
    )
    assert told == (
        "Failing test: tests/test_x.py::test_a[x]\n  error: NameError: x\n"
        "  also fails in the same way: [y, z], tests/test_x.py::test_a, tests/test_x.py::test_b[x], [[1]],"
        " tests/test_x.py::Case::test_b[x]"
    )


def test_a_run_without_named_tests_gives_its_messages_and_places() -> None:
    found = Evidence(messages=("error: expected `;`",), frames=(StackFrame(path="src/a.rs", line=4),))
    assert (
        describe_evidence(found)
        == "Messages:\n- error: expected `;`\nPlaces in the stack traces:\n- src/a.rs:4"
    )


@pytest.mark.parametrize(
    "message",
    [
        "assert 'http://webse...q%3Dfoo%252Fa' == 'http://webse...q%3Dfoo%252Fa'",
        "AssertionError: assert [1, 2...] == [1, 2...]",
        "AssertionError: 'ab[99 chars]yz' != 'ab[99 chars]yz'",
    ],
)
def test_values_that_look_equal_are_not_set_against_each_other(message: str) -> None:
    told = describe_evidence(evidence(FailingTest(name="t", message=message, statement="assert a == b")))
    assert told == "Failing test: t\n  failing line: assert a == b"


def test_ten_long_failures_leave_a_small_window_its_room() -> None:
    tests = [
        FailingTest(
            name=f"tests/test_{number}.py::test_" + "n" * 300,
            statement="assert " + "s" * 500,
            expected=f"{number}" + "e\n" * 5_000,
            actual=f"{number}" + "a" * 10_000,
        )
        for number in range(50)
    ]
    assert evidence_bound(8192) == 4096
    told = describe_evidence(evidence(*tests), bound=evidence_bound(8192))
    assert len(told) <= 4096
    assert told.count("\n  expected:\n") == told.count("\n  actual: ") >= 5
    assert re.search(r"^and \d+ more$", told, re.MULTILINE)


VALUES = st.text(max_size=4_000) | st.text("=# \nab", max_size=4_000)


@given(
    st.lists(
        st.builds(FailingTest, name=VALUES, message=VALUES, statement=VALUES, expected=VALUES, actual=VALUES),
        max_size=25,
    )
)
def test_nothing_that_a_test_says_exceeds_the_bound_or_passes_for_a_heading(tests: list[FailingTest]) -> None:
    told = describe_tests([("Failing test", test) for test in tests], bound=LEAST_CHARACTERS)
    assert len(told) <= LEAST_CHARACTERS
    assert all(re.match(r"Failing test: | {2}|and \d+ more", line) for line in told.split("\n") if told)
    assert framed_items(told) == ()
