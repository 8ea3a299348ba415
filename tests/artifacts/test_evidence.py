"""How failing tests are described."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from testing.framed_items import framed_items

from clean_room_agent.artifacts.evidence import (
    LEAST_CHARACTERS,
    MAX_BLOCKS,
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


def test_failing_tests_are_named_in_the_order_in_which_they_are_shown() -> None:
    evidence = Evidence(tests=(FailingTest(name="b", message="boom"), FailingTest(name="a")))
    assert evidence.failing_tests == ("b", "a")
    assert Evidence().failing_tests == ()


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


def test_tests_of_which_nothing_but_the_name_is_known_are_not_called_the_same() -> None:
    told = describe_evidence(evidence(FailingTest(name="one"), FailingTest(name="two")))
    assert told == "Failing test: one\nFailing test: two"


def test_a_run_without_named_tests_gives_its_messages_and_places() -> None:
    found = Evidence(messages=("error: expected `;`",), frames=(StackFrame(path="src/a.rs", line=4),))
    assert (
        describe_evidence(found)
        == "Messages:\n- error: expected `;`\nPlaces in the stack traces:\n- src/a.rs:4"
    )


def test_what_was_said_beside_the_tests_is_told() -> None:
    found = Evidence(tests=(BROKEN,), messages=("stopped after 3 s", BROKEN.message))
    assert describe_evidence(found).endswith("\nMessages:\n- stopped after 3 s")


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


def test_of_a_call_that_never_came_the_message_is_shown_beside_what_was_expected() -> None:
    test = FailingTest(name="t", message="AssertionError: Calls not found.", expected="[call(1)]")
    assert describe_evidence(evidence(test)) == (
        "Failing test: t\n  expected: [call(1)]\n  error: AssertionError: Calls not found."
    )


def test_the_name_of_a_test_is_written_as_the_runner_writes_it() -> None:
    assert describe_evidence(evidence(FailingTest(name="t.py::test[    x = 1-2]"))) == (
        "Failing test: t.py::test[    x = 1-2]"
    )


def test_equal_values_are_left_out_for_the_message() -> None:
    test = FailingTest(name="t", message="different objects", expected="<A>", actual="<A>")
    assert describe_evidence(evidence(test)) == "Failing test: t\n  error: different objects"


def test_long_values_that_differ_late_are_shown_from_where_they_differ() -> None:
    expected, actual = "x" * 20_000 + "left" + "y" * 9_000, "x" * 20_000 + "right" + "y" * 9_000
    told = describe_evidence(evidence(FailingTest(name="t", expected=expected, actual=actual)))
    first, second = re.findall(r"^  (?:expected|actual): (.+)$", told, re.MULTILINE)
    assert ("xleft" in first, "xright" in second) == (True, True)
    assert first.startswith("[... ")
    assert len(told) <= 8_000


def test_a_short_value_gives_its_room_to_a_long_one() -> None:
    told = describe_evidence(
        evidence(FailingTest(name="t", expected="0", actual="<" + "v" * 5_000 + ">")), bound=2_000
    )
    assert 1_900 < len(told) <= 2_000
    assert "\n  expected: 0\n  actual: <vvv" in told
    assert "characters left out" in told
    assert told.endswith("v>")


def test_beyond_ten_blocks_tests_have_a_line_each() -> None:
    tests = [FailingTest(name=f"test_{number:02}", message=f"error {number}") for number in range(14)]
    told = describe_evidence(evidence(*tests)).split("\n")
    assert sum(line.startswith("  error") for line in told) == MAX_BLOCKS
    assert told[-4:] == [f"Failing test: test_{number}" for number in range(10, 14)]


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
