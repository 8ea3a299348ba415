import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.orchestrator.testing.compared_values import MAX_VALUE, cut_pair, label, values_in


@pytest.mark.parametrize(
    ("operator", "statement", "expected", "actual"),
    [
        ("==", "assert f(x) == y", "R", "L"),
        ("==", "assert 3 == f(x), 'words'", "L", "R"),
        ("==", "assert [1, -2] == f(x)", "L", "R"),
        ("==", "assert expected == f(x)", "L", "R"),
        ("==", "assert self.expected == expected_too", "R", "L"),
        ("==", "assert result == f(x)", "R", "L"),
        ("==", "assert f(x) == result", "L", "R"),
        ("==", "self.assertEqual(3, f(x))", "L", "R"),
        ("==", "self.assertEqual(f(x), 3)", "R", "L"),
        ("==", "with a as b:", "R", "L"),
        ("is", "assert f(x) is None", "R", "L"),
        ("in", "assert x in y", "in R", "L"),
        ("!=", "assert 3 != x", "!= R", "L"),
    ],
)
def test_a_comparison_is_labelled_by_the_conventions_of_its_runner(
    operator: str, statement: str, expected: str, actual: str
) -> None:
    assert label(operator, "L", "R", statement) == (expected, actual)


def test_a_long_value_keeps_head_tail_and_its_first_difference() -> None:
    left, right = "a" * 5_000 + "X" + "b" * 5_000, "a" * 5_000 + "Y" + "b" * 5_000
    shown = cut_pair(left, right)
    for value, mark in zip(shown, "XY", strict=True):
        assert f"a{mark}b" in value
        assert value.startswith("aaa")
        assert value.endswith("bbb")
        assert len(value) < MAX_VALUE + 100
        assert value.count("characters left out") == 2


@given(st.text(alphabet="ab", max_size=60), st.text(alphabet="ab", max_size=60), st.integers(9, 40))
def test_what_a_cut_leaves_out_is_counted(expected: str, actual: str, most: int) -> None:
    for whole, shown in zip((expected, actual), cut_pair(expected, actual, most=most), strict=True):
        parts = shown.replace("[... ", "\0").replace(" characters left out ...]", "\0").split("\0")
        kept, left_out = "".join(parts[::2]), sum(map(int, parts[1::2]))
        assert len(kept) + left_out == len(whole)
        assert (left_out == 0) == (shown == whole)


JEST_DIFF = """Error: expect(received).toEqual(expected) // deep equality

- Expected  - 1
+ Received  + 1

  Object {
-   "a": 1,
+   "a": 2,
  }"""
MOCHA_DIFF = """AssertionError: no
      + expected - actual

       {
      -  "a": 2
      +  "a": 1
       }
      """
NODE_DIFF = """Expected values to be strictly equal:
+ actual - expected

+ 'got'
- 'wanted'"""


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("expect(received).toBe(expected)\n\nExpected: 3\nReceived: 2", ("3", "2")),
        ("Expected value: 3\nReceived array: [1, 2]", ("3", "array [1, 2]")),
        ('Expected substring: "bad"\n\nReceived function did not throw', ('substring "bad"', "function did not throw")),
        ("Expected: not 1", ("not 1", "")),
        ('- Expected:\n1\n\n+ Received:\n"1"', ("1", '"1"')),
        ("Expected value to equal:\n  3\nReceived:\n  2", ("to equal 3", "2")),
        (JEST_DIFF, ('Object {\n  "a": 1,\n}', 'Object {\n  "a": 2,\n}')),
        (MOCHA_DIFF, ('{\n  "a": 1\n}', '{\n  "a": 2\n}')),
        (NODE_DIFF, ("'wanted'", "'got'")),
        ("expected: 3\nactual: 2", ("3", "2")),
        ("expected call not found.\nExpected: f(1)\n  Actual: f(2)", ("f(1)", "f(2)")),
        ("Regex pattern did not match.\n  Regex: 'x'\n  Input: 'y'", ("'x'", "'y'")),
        ("TypeError: x is not a function", ("", "")),
        ("", ("", "")),
    ],
)  # fmt: skip
def test_values_are_read_from_the_words_of_each_runner(text: str, values: tuple[str, str]) -> None:
    assert values_in(text) == values
