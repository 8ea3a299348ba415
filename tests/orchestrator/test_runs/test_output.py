import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.languages.printed_values import strip_escapes, values_in
from clean_room_agent.orchestrator.test_runs.output import (
    MAX_VALUE,
    MOST_LINES,
    SourceTree,
    cut_pair,
    error_lines,
    first_and_last_lines,
    label,
    normalise,
    normalise_name,
)

ROOTS = (Path("/cache/cra/w1"), Path("/home/u/repo"))
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
    ("printed", "kept"),
    [
        ("\x1b[1;31mE   boom\x1b[0m", "E   boom"),
        ("\x1b]0;title\x07\x1b]8;;http://x\x1b\\text", "text"),
        ("10%\r50%\r100%", "100%"),
        ("a\x00b\u202ec", "a\\x00b\\u202ec"),
        ("/cache/cra/w1/src/a.py:3: in f", "src/a.py:3: in f"),
        ("/home/u/repo/tests/t.py and /home/u/repo2/x", "tests/t.py and /home/u/repo2/x"),
        ("cwd is /cache/cra/w1", "cwd is ."),
        ("at f (file:///home/u/repo/a.js:1:2)", "at f (a.js:1:2)"),
        ("../../usr/lib/python3.11/json/decoder.py:3: in g", "python/json/decoder.py:3: in g"),
        ("/v/lib/python3.12/site-packages/x/y.py:1", "site-packages/x/y.py:1"),
        ("/tmp/pytest-of-u/pytest-12/test_a0/f.txt", "<tmp>/test_a0/f.txt"),
        ("'/tmp/tmpab12_x9z/f'", "'<tmp>/f'"),
        ("<Thing object at 0x7fb3b81eeed0>", "<Thing object at 0x…>"),
        ("flags 0xdeadbeef", "flags 0xdeadbeef"),
        ("id 123e4567-e89b-42d3-a456-426614174000", "id <uuid>"),
        ("http://127.0.0.1:49213/ not :5000", "http://127.0.0.1:<port>/ not :5000"),
        ("=== 1 failed, 2 passed in 0.31s ===", "=== 1 failed, 2 passed ==="),
        ("=== 2 passed in 71.31s (0:01:11) ===", "=== 2 passed ==="),
        (
            "===== 1 failed in 9.99s =====",
            "=== 1 failed ===",
        ),  # centred: as many marks as the seconds leave room for
        ("==== 1 failed in 10.01s ====", "=== 1 failed ==="),
        ("===== boom in 5 =====", "===== boom in 5 ====="),
        ("Ran 3 tests in 0.001s", "Ran 3 tests"),
        ("    ✔ works (12ms)", "    ✔ works"),
        ("# duration_ms 12.5", "# duration_ms"),
        ("0.02s call     t.py::a", "call     t.py::a"),
        ("E   assert '5s' == '6s'", "E   assert '5s' == '6s'"),
        ("2026-01-02 10:11:12,123 INFO x", "<time> INFO x"),
        ("E   assert '2026-01-02T10:11:12' == 1", "E   assert '2026-01-02T10:11:12' == 1"),
        ("a\n>       f()\n        ^^^\n    x ~~~^~~~", "a\n>       f()\n    x ~~~^~~~"),
        ("platform linux -- Python 3.11.7, pytest-9\nplugins: a-1, b-2\nrootdir: /x\nok", "ok"),
        ("----- generated xml file: /run/r.xml -----\nok", "ok"),
        ("(0 , __vite_ssr_import_1__.half) is not a function", "half is not a function"),
        ("(0 , utils_1.money.half) is not a function", "money.half is not a function"),
        ("half = __vite_ssr_import_12__.half + __vi_import_0__.default", "half = half + default"),
        ("assert f() == (0, a.b)", "assert f() == (0, a.b)"),
    ],
)
def test_what_differs_between_runs_goes_and_what_tells_stays(printed: str, kept: str) -> None:
    assert normalise(printed, ROOTS) == kept


def test_names_keep_all_but_places_and_addresses() -> None:
    assert normalise_name("t.py::a[/home/u/repo/x.py-at 0x7fb3b81eeed0]", ROOTS) == "t.py::a[x.py-at 0x…]"


@given(st.text())
def test_no_text_breaks_it_and_no_escape_survives(text: str) -> None:
    once = strip_escapes(text)
    assert "\x1b" not in once
    assert strip_escapes(once) == once
    normalise(text, ROOTS)


@pytest.mark.parametrize("piece", ["a/", "/a", "\0", "x="])
def test_a_word_without_end_is_normalised_in_no_time(piece: str) -> None:
    started = time.process_time()
    normalise(piece * 40_000, [])
    assert time.process_time() - started < 2


def test_the_end_of_a_word_may_be_a_temporary_folder() -> None:
    assert normalise("x=/tmp/pytest-of-me/pytest-3/a", []) == "x=<tmp>/a"
    assert normalise("/tmp/pytest-of-me/pytest-3/a", []) == "<tmp>/a"
    assert normalise("(/usr/lib/python3.11/site-packages/x.py)", []) == "(site-packages/x.py)"


def test_of_a_very_long_output_the_first_and_the_last_lines_are_looked_at() -> None:
    lines = [f"line {number}" for number in range(2 * MOST_LINES + 3)]
    kept = first_and_last_lines("\n".join(lines)).split("\n")
    assert kept == [*lines[:MOST_LINES], "[... 3 lines left out ...]", *lines[-MOST_LINES:]]
    whole = "\n".join(lines[:-3])
    assert first_and_last_lines(whole) == whole


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
        ("in", "assert x in y", "to be in R", "L"),
        ("!=", "assert 3 != x", "not to be L", "R"),
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


def test_of_a_container_only_the_ends_are_kept_and_of_a_text_more() -> None:
    members = "{" + ", ".join(f"'module_{number}'" for number in range(300)) + "}"
    expected, actual = cut_pair(f"to be in {members}", "'httpcore'")
    assert len(expected) < 500
    assert expected.startswith("to be in {'module_0'")
    assert expected.endswith("'module_299'}")
    assert actual == "'httpcore'"
    expected, actual = cut_pair("not to contain 'httpcore'", members)
    assert expected == "not to contain 'httpcore'"
    assert actual.startswith("{'module_0'")
    assert len(actual) < 500
    printed = f"'{'a line of output ' * 80}'"
    assert cut_pair(f"not to be in {printed}", "'x'") == (f"not to be in {printed}", "'x'")
    assert cut_pair("to contain 'x'", printed) == ("to contain 'x'", printed)


@pytest.mark.parametrize(
    ("statement", "operator", "left", "right", "told"),
    [
        ("assert '[a]' in help(f)", "in", "'[a]'", "''", ("to contain '[a]'", "''")),
        ("assert f(3) not in [3]", "not in", "3", "[3]", ("not to be in [3]", "3")),
        ("def test_a(): assert 3 < f(2)", "<", "3", "2", ("to be more than 3", "2")),
        ("assert f(5) <= 3", "<=", "5", "3", ("to be at most 3", "5")),
        ("assert f(x) is not None", "is not", "None", "None", ("not to be None", "None")),
        ("assert f(x) is None", "is", "1", "None", ("None", "1")),
        ("self.assertIsNone(f(1))", "is None", "1", "", ("None", "1")),
        ("self.assertIn('x', f(1))", "in", "'x'", "'abc'", ("to contain 'x'", "'abc'")),
        ("self.assertTrue(f(0))", "a true value", "0", "", ("a true value", "0")),
    ],
)  # fmt: skip
def test_a_comparison_in_python_is_told_in_words(
    statement: str, operator: str, left: str, right: str, told: tuple[str, str]
) -> None:
    assert label(operator, left, right, statement) == told


@given(st.text(alphabet="ab", max_size=60), st.text(alphabet="ab", max_size=60), st.integers(40, 90))
def test_what_a_cut_leaves_out_is_counted(expected: str, actual: str, times: int) -> None:
    pair = (expected * times, actual * times)
    for whole, shown in zip(pair, cut_pair(*pair), strict=True):
        parts = shown.replace("[... ", "\0").replace(" characters left out ...]", "\0").split("\0")
        kept, left_out = "".join(parts[::2]), sum(map(int, parts[1::2]))
        assert len(kept) + left_out == len(whole)
        assert (left_out == 0) == (shown == whole)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("expect(received).toBe(expected)\n\nExpected: 3\nReceived: 2", ("3", "2")),
        ("Expected value: 3\nReceived array: [1, 2]", ("3", "array [1, 2]")),
        ("Error: expect(received).toContain(expected) // indexOf\n\nExpected value: 3\nReceived array: [1, 2]", ("to contain 3", "[1, 2]")),
        ('expect(received).not.toContain(expected) // indexOf\n\nExpected substring: not "b"\nReceived string:        "abc"', ('not to contain "b"', '"abc"')),
        ("expect(received).toBeGreaterThan(expected)\n\nExpected: > 5\nReceived:   3", ("to be more than 5", "3")),
        ("expect(received).not.toBe(expected) // Object.is equality\n\nExpected: not 1", ("not to be 1", "1")),
        ('expect(received).resolves.toMatch(expected)\n\nExpected pattern: /x/\nReceived string:  "abc"', ("to match /x/", '"abc"')),
        ('expect(received).toBeTruthy()\n\nReceived: ""', ("a true value", '""')),
        ("expect(received).not.toBeNull()\n\nReceived: null", ("not to be null", "null")),
        ('expect(received).toHaveProperty(path, value)\n\nExpected path: "a"\n\nExpected value: 2\nReceived value: 1', ("2", "1")),
        ("expect(received).toHaveLength(expected)\n\nExpected length: 2\nReceived length: 1\nReceived array:  [1]", ("length 2", "length 1")),
        ('Expected substring: "bad"\n\nReceived function did not throw', ('substring "bad"', "function did not throw")),
        ("Expected: not 1", ("not 1", "")),
        ('- Expected:\n1\n\n+ Received:\n"1"', ("1", '"1"')),
        ("Expected value to equal:\n  3\nReceived:\n  2", ("to equal 3", "2")),
        (JEST_DIFF, ('Object {\n  "a": 1,\n}', 'Object {\n  "a": 2,\n}')),
        (MOCHA_DIFF, ('{\n  "a": 1\n}', '{\n  "a": 2\n}')),
        (NODE_DIFF, ("'wanted'", "'got'")),
        ("expected: 3\nactual: 2", ("3", "2")),
        ("expected call not found.\nExpected: f(1)\n  Actual: f(2)", ("f(1)", "f(2)")),
        ("Regex pattern did not match.\n  Regex: 'x'\n  Input: 'y'", ("to match 'x'", "'y'")),
        ("TypeError: x is not a function", ("", "")),
        ("", ("", "")),
    ],
)  # fmt: skip
def test_values_are_read_from_the_words_of_each_runner(text: str, values: tuple[str, str]) -> None:
    assert values_in(text) == values


PYTHON = """import a

def test_it():
    with raises(ValueError):
        check(
            1,
            2,
        )
    if x: fail(); stop()
    for n in (
        1, 2,
    ):
        pass
"""
SCRIPT = """describe('a', () => {
  it('b', () => {
    expect(
      f(1),
    ).toBe(2);
  });
});
"""


@pytest.fixture
def tree(tmp_path: Path) -> SourceTree:
    (tmp_path / "t.py").write_text(PYTHON)
    (tmp_path / "t.test.ts").write_text(SCRIPT)
    (tmp_path / "broken.py").write_text("def f(:\n    assert  1\n")
    (tmp_path / "notes.vue").write_text("<script>\n  expect(1).toBe(2)\n")
    (tmp_path / "link.py").symlink_to(tmp_path / "t.py")
    return SourceTree(tmp_path)


@pytest.mark.parametrize(
    ("path", "line", "statement"),
    [
        ("t.py", 1, "import a"),
        ("t.py", 4, "with raises(ValueError):"),
        ("t.py", 5, "check(\n    1,\n    2,\n)"),
        ("t.py", 6, "check(\n    1,\n    2,\n)"),
        ("t.py", 9, "if x: fail(); stop()"),
        ("t.py", 11, "for n in (\n    1, 2,\n):"),
        ("t.test.ts", 4, "expect(\n  f(1),\n).toBe(2);"),
        ("broken.py", 2, "assert  1"),
        ("notes.vue", 2, "expect(1).toBe(2)"),
        ("t.py", 99, ""),
        ("t.py", 0, ""),
        ("gone.py", 1, ""),
        ("link.py", 1, ""),
        ("../t.py", 1, ""),
    ],
)
def test_the_statement_at_a_line_is_given_whole(
    tree: SourceTree, path: str, line: int, statement: str
) -> None:
    assert tree.statement(path, line) == statement


PYTEST = ["AssertionError: words", "assert 'a...b' == 'a...c'", "  ", "  Skipping 90 identical leading characters in diff, use -v to show",
          "  - ab", "  + ac", "  ?  ^"]  # fmt: skip
UNITTEST = ["AssertionError: {'a': 1} != {'a': 2}", "- {'a': 1}", "?       ^", "", "+ {'a': 2} : own words"]
WHERE = ["AssertionError: assert 3 == 4", " +  where 3 = len([1, 2, 3])"]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (PYTEST, ["AssertionError: words"]),
        (UNITTEST, ["AssertionError: {'a': 1} != {'a': 2}", "own words"]),
        (WHERE, WHERE),
        (["Error: expect(received).toBe(expected) // Object.is equality", "", "Expected: 3", "Received: 2"],
         ["Error: expect(received).toBe(expected)"]),
        (["AssertionError: expected { a: 1, …(2) } to deeply equal { a: 1, …(2) }"], ["AssertionError"]),
        (["AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:", "+ actual - expected", "", "+ 1", "- 2"],
         ["AssertionError: Expected values to be strictly equal:"]),
        (["Expected values to be strictly equal:", "", "+ actual - expected"], ["Expected values to be strictly equal"]),
        (["expected [ Array(60) ] to equal [ Array(60) ]"], ["AssertionError"]),
    ],
)  # fmt: skip
def test_words_do_not_show_the_values_once_more(lines: list[str], told: list[str]) -> None:
    assert error_lines("\n".join(lines), values_known=True) == tuple(told)


def test_without_values_only_hints_stay_out() -> None:
    assert error_lines("\n".join(PYTEST)) == (PYTEST[0], PYTEST[1], "  - ab", "  + ac")
