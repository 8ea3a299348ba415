"""What assertions call and want."""

import pytest

from clean_room_agent.execute.goals.asserted import Asserted, asserted, asserted_by_helper, script_asserted


@pytest.mark.parametrize(
    ("statement", "call", "wanted"),
    [
        ("assert split(100, 3) == [34, 33, 33]", "split(100, 3)", "[34, 33, 33]"),
        ("assert tuple(f([5, 6])) == tuple([6, 5])", "tuple(f([5, 6]))", "tuple([6, 5])"),
        ("assert f(1) is None", "f(1)", "None"),
        ("assert is_prime(7)", "is_prime(7)", "True"),
        ("assert not is_prime(8), 'eight'", "is_prime(8)", "False"),
        ("self.assertEqual(f(2), 3)", "f(2)", "3"),
        ("self.assertListEqual(f(2), [3])", "f(2)", "[3]"),
        ("self.assertTrue(f(2))", "f(2)", "True"),
        ("def test_one(): assert one() == 1", "one()", "1"),
    ],
)
def test_a_comparison_tells_the_call_and_the_value(statement: str, call: str, wanted: str) -> None:
    assert asserted(statement) == Asserted(call=call, wanted=wanted)


@pytest.mark.parametrize(
    "statement",
    [
        "assert result == 3",
        "assert f(1) != 3",
        "assert f(1) < 3",
        "f(1)",
        "assert f(",
        "self.assertIn(1, f(2))",
        "",
    ],
)
def test_what_compares_no_call_with_a_value_tells_nothing(statement: str) -> None:
    assert asserted(statement) is None


def test_a_call_on_the_right_is_the_call() -> None:
    assert asserted("assert 3 == f(1)") == Asserted(call="f(1)", wanted="3", swapped=True)


def test_names_that_the_test_assigns_once_are_replaced() -> None:
    function = (
        "def test_double():\n    values = [1, 2]\n    result = double(values)\n    assert result == [2, 4]\n"
    )
    assert asserted("assert result == [2, 4]", function) == Asserted(call="double([1, 2])", wanted="[2, 4]")


def test_arguments_whose_values_are_known_are_replaced() -> None:
    function = "def test_hanoi(given, expected):\n    assert hanoi(*given, 'c') == expected\n"
    found = asserted(
        "assert hanoi(*given, 'c') == expected", function, {"given": "[2, 1]", "expected": "[(1, 3)]"}
    )
    assert found == Asserted(call="hanoi(2, 1, 'c')", wanted="[(1, 3)]")


HELPED = """\
def check(candidate, extra=0):
    assert candidate([1]) == [1]
    assert candidate([2, 1]) == [
        1, 2,
    ]


def test_it():
    check(sort_it)
"""


@pytest.mark.parametrize(("line", "call"), [(2, "sort_it([1])"), (4, "sort_it([2, 1])")])
def test_what_a_helper_asserts_is_told_with_what_the_test_gave_it(line: int, call: str) -> None:
    found = asserted_by_helper(HELPED, line, "check(sort_it)")
    assert (found and found.call) == call


@pytest.mark.parametrize(
    "calling", ["other(sort_it)", "check(*all)", "helpers.check(sort_it)", "check(", "x = 1"]
)
def test_another_call_than_the_helpers_tells_nothing(calling: str) -> None:
    assert asserted_by_helper(HELPED, 2, calling) is None


def test_a_name_that_is_bound_twice_stays() -> None:
    function = "def test():\n    n = 1\n    for n in range(3):\n        assert f(n) == 2\n"
    assert asserted("assert f(n) == 2", function) == Asserted(call="f(n)", wanted="2")


def test_a_name_that_is_made_of_itself_ends() -> None:
    assert asserted("assert f(n) == 2", "n = n + 1\n") is not None


@pytest.mark.parametrize(
    ("statement", "call", "wanted"),
    [
        ("expect(split(100, 3)).toEqual([34, 33, 33]);", "split(100, 3)", "[34, 33, 33]"),
        ("expect(f(')')).toBe('(')", "f(')')", "'('"),
        ("await expect(f(1)).toStrictEqual({a: 1})", "f(1)", "{a: 1}"),
        ("assert.deepStrictEqual(f([1, 2], 'a,b'), [2, 1]);", "f([1, 2], 'a,b')", "[2, 1]"),
    ],
)
def test_a_comparison_in_javascript_tells_them_too(statement: str, call: str, wanted: str) -> None:
    assert script_asserted(statement) == Asserted(call=call, wanted=wanted)


@pytest.mark.parametrize(
    "statement", ["expect(result).toBe(3)", "expect(f(1)).not.toBe(3)", "assert.ok(f(1))", "expect(f(1", ""]
)
def test_other_statements_of_javascript_tell_nothing(statement: str) -> None:
    assert script_asserted(statement) is None
