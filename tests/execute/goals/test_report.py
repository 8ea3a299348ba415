"""Reports as users write them, and what is read from them."""

import pytest

from clean_room_agent.execute.goals.expressions import (
    PYTHON_BUILTINS,
    PYTHON_VALUES,
    Expressions,
    PythonExpressions,
    ScriptExpressions,
)
from clean_room_agent.execute.goals.report import (
    Claim,
    documented_claims,
    names_in,
    read_report,
    script_claims,
)

KNOWN = frozenset(
    {"f", "g", "chunked", "ordinal", "slugify", "naturalsize", "Stack", "clamp", "parse", "humanize"}
)
PYTHON, SCRIPT = PythonExpressions(), ScriptExpressions()


def claims_of(text: str, language: Expressions = PYTHON) -> tuple[Claim, ...]:
    def usable(expression: str, setup: tuple[str, ...]) -> bool:
        used, bound = set(language.free_names(expression) or ()), set[str]()
        for statement in setup:
            binds, uses, _ = language.effects(statement)
            bound, used = bound | binds, used | uses
        return not used - bound - KNOWN - PYTHON_VALUES.keys() - PYTHON_BUILTINS and bool(used & KNOWN)

    return read_report(text, language, usable)


def read(text: str, language: Expressions = PYTHON) -> list[str]:
    """Each call with its values: `f(10): got 3, wanted 4`; `?` for a value without a role, text without quotes in < >."""
    found = []
    for claim in claims_of(text, language):
        said = []
        for value in claim.values:
            shown = f"<{value.text}>" if value.kind in {"bare", "output"} else value.text
            said.append(" ".join(filter(None, (value.role or "?", value.part, shown))))
        setup = f"{'; '.join(claim.setup)}; " if claim.setup else ""
        found.append(
            f"{setup}{claim.call}: {', '.join(said)}{' must not fail' if claim.must_not_fail else ''}"
        )
    return found


REPORTS: dict[str, list[str]] = {
    "chunked(range(10), 3, fill=0) ends with [9, 0] instead of [9, 0, 0]": [
        "chunked(range(10), 3, fill=0): got end [9, 0], wanted end [9, 0, 0]"
    ],
    "f(10) returns 3, should be 4": ["f(10): got 3, wanted 4"],
    "[f(1), f(2)] should be [3, 4]": ["[f(1), f(2)]: wanted [3, 4]"],
    "{f(1): 2} gives {1: 2}, should be {3: 2}": ["{f(1): 2}: got {1: 2}, wanted {3: 2}"],
    "`not f(10)` should be True": ["not f(10): wanted True"],
    "f(3) is fine, but not f(10), which returns 3 and should return 4": [
        "f(3): ",
        "f(10): got 3, wanted 4",
    ],
    "Change f so that f(10) gives 4": ["f(10): wanted 4"],
    "Make sure f(10) returns 4": ["f(10): wanted 4"],
    "f(0) crashes with ZeroDivisionError; please return None": ["f(0): got ZeroDivisionError, wanted None"],
    "Please fix: f(10) returns 3, should be 4": ["f(10): got 3, wanted 4"],
    "the result of f(10) is 3, should be 4": ["f(10): got 3, wanted 4"],
    "see [f(10)](f.html): it returns 3, should be 4": ["f(10): got 3, wanted 4"],
    'crashes with "IndexError" or so: `f(10)` fails, but it should give "zero"': [
        'f(10): got IndexError, wanted "zero"'
    ],
    'after `s = Stack("a"); t = s / 1`, str(s) is "b". It should still be "a".': [
        's = Stack(\'a\'); t = s / 1; str(s): got "b", wanted "a"'
    ],
    "`s = Stack(1); s.pop()` gives 2, should give 1": ["s = Stack(1); s.pop(): got 2, wanted 1"],
    "`f(10)` fails with `TypeError: g() arg 2 must be a type, a tuple of types, or a union`, but it should give `4`": [
        "f(10): got TypeError, wanted 4"
    ],
    "the behaviour of f(10) is wrong: it returns 3, should be 4": ["f(10): got 3, wanted 4"],
    "f(1) + f(2) should be 3": ["f(1) + f(2): wanted 3"],
    "len(f(1)) + 2 gives 4, should give 3": ["len(f(1)) + 2: got 4, wanted 3"],
    "f(1) % 2 * 3 should be 3": ["f(1) % 2 * 3: wanted 3"],
    "f('a') + 'b' should be 'ab'": ["f('a') + 'b': wanted 'ab'"],
    "f(1) in [1, 2] is False, should be True": ["f(1) in [1, 2]: got False, wanted True"],
    "f(10) in 'utils.py' returns 3, should be 4": ["f(10): "],
    "f(10) - it returns 3, should be 4": ["f(10): got 3, wanted 4"],
    "`f(10)` gives `Stack(1)`, but it should give `Stack(2)`": ["f(10): got Stack(1), wanted Stack(2)"],
    "f(10) gives f(11), but it should give f(12)": ["f(10): got f(11), wanted f(12)"],
    "Stack(1) + Stack(2) gives Stack(1), expected Stack(3)": [
        "Stack(1) + Stack(2): got Stack(1), wanted Stack(3)"
    ],
    "f(b=2, a=1) == f(a=1, b=2) gives False, but it should give True": [
        "f(b=2, a=1) == f(a=1, b=2): got False, wanted True"
    ],
    "f(1) < g(2) is False, should be True": ["f(1) < g(2): got False, wanted True"],
    "f(1) == Decimal('1'), should be 2": ["f(1): got Decimal('1'), wanted 2"],
    "f(10) raises KeyError instead of ValueError": ["f(10): got KeyError, wanted ValueError"],
    "`ordinal(111)` returns 111st instead of 111th.": ["ordinal(111): got <111st>, wanted <111th>"],
    "Expected 4 but got 3 from f(10).": ["f(10): wanted 4, got 3"],
    "f(10) should return 4 instead of 3.": ["f(10): wanted 4, got 3"],
    "f(10) returns 3 but 4 is expected": ["f(10): got 3, wanted 4"],
    "f(10) gives 3, not 4": ["f(10): got 3, wanted 4"],
    "I expected `f(10)` to be `4`, got `3`.": ["f(10): wanted 4, got 3"],
    "In version 2.1 f(10) returns 3 on Python 3.11; it should return 4. See issue #5.": [
        "f(10): got 3, wanted 4"
    ],
    ">>> f(10)\n3\n\nshould be 4": ["f(10): got 3, wanted 4"],
    ">>> f(10)\n3\n>>> # should be 4": ["f(10): got 3, wanted 4"],
    "```\n>>> f(10)\n3        # expected 4\n```": ["f(10): got 3, wanted 4"],
    "```\nIn [1]: f(10)\nOut[1]: 3\n```\nIt should be 4.": ["f(10): got 3, wanted 4"],
    "```python\n>>> from m import Stack\n>>> s = Stack()\n>>> s.push(1)\n>>> s.peek()\nTraceback (most recent call last):\n"
    '  File "x.py", line 3, in peek\nIndexError: list index out of range\n```\nIt should return 1.': [
        "from m import Stack; s = Stack(); s.push(1): ",
        "from m import Stack; s = Stack(); s.push(1); s.peek(): got IndexError, wanted 1",
    ],
    "```\nf(10)  # returns 3, should be 4\nf(20)  # => 5\n```": ["f(10): got 3, wanted 4", "f(20): got 5"],
    "```python\nassert f(10) == 4\n```\nfails": ["f(10): asserted 4"],
    "### Expected behavior\n`f(10)` returns 4\n\n### Actual behavior\n`f(10)` returns 3": [
        "f(10): wanted 4, got 3"
    ],
    "### Expected\n\n4\n\n### Actual\n\n3\n\nCall: `f(10)`": ["f(10): wanted 4, got 3"],
    "f(10) -> 3 (expected 4), f(20) -> 5 (expected 6)": ["f(10): got 3, wanted 4", "f(20): got 5, wanted 6"],
    "naturalsize(1000000) returns 1.1 MB instead of 1.0 MB.": [
        "naturalsize(1000000): got <1.1 MB>, wanted <1.0 MB>"
    ],
    "slugify('x') returns an empty string, it should return 'x'": ["slugify('x'): got '', wanted 'x'"],
    "f([]) crashes with IndexError, it should return None.": ["f([]): got IndexError, wanted None"],
    "f('') should not raise": ["f(''):  must not fail"],
    "f(10) should raise ValueError but returns None": ["f(10): wanted ValueError, got None"],
    "the value(s) of f(10) should be 4 (they are 3)": ["f(10): wanted 4, got 3"],
    "When calling f(10) I get 3 and I want 4": ["f(10): got 3, wanted 4"],
    "f(10) must be 4. Currently it is 3.": ["f(10): wanted 4, got 3"],
    'Calling f(10) gives "3" where "4" would be correct.': ['f(10): got "3", wanted "4"'],
    "Instead of 4, f(10) returns 3.": ["f(10): wanted 4, got 3"],
    "clamp(5, 0, 3) should return 3, clamp(-1, 0, 3) should return 0": [
        "clamp(5, 0, 3): wanted 3",
        "clamp(-1, 0, 3): wanted 0",
    ],
    "f(10): expected 4, got 3": ["f(10): wanted 4, got 3"],
    "f(10) does not return 4": ["f(10): wanted 4"],
    "`f(10)` no longer returns `4`": ["f(10): wanted 4"],
    "`f(10)` used to return 4, now returns 3": ["f(10): wanted 4, got 3"],
    "Problem: f(10) → 3; correct → 4": ["f(10): got 3, wanted 4"],
    "f(\"a\") raises `KeyError: 'a'`; a ValueError is expected.": ['f("a"): got KeyError, wanted ValueError'],
    'f("a") fails with "TypeError: unsupported operand". It should give \'A\'.': [
        "f(\"a\"): got TypeError, wanted 'A'"
    ],
    "With f(10, strict=True) it must raise ValueError.": ["f(10, strict=True): wanted ValueError"],
    "* `f(10)` - expected `4`, actual `3`\n* `f(20)` - expected `8`, actual `7`": [
        "f(10): wanted 4, got 3",
        "f(20): wanted 8, got 7",
    ],
    "f(10, 3) → (3, 1) but (4, 1) expected.": ["f(10, 3): got (3, 1), wanted (4, 1)"],
    "f(10) returns '3' (str) instead of 3 (int)": ["f(10): got '3', wanted 3"],
    "f(10) should have returned 4 but it returned 3": ["f(10): wanted 4, got 3"],
    "f(10) gives wrong result 3 instead of expected 4": ["f(10): got 3, wanted 4"],
    "4 is what f(10) should give, not 3": ["f(10): wanted 4, got 3"],
    "assert f(10) == 4 fails, it gives 3": ["f(10): asserted 4, got 3"],
    "`f(10) == 4` should hold, but I get 3": ["f(10): asserted 4, got 3"],
    "```py\nx = f(10)\nassert x == 4\n```": ["f(10): asserted 4"],
    "f(10) returns 3 when it should return 4": ["f(10): got 3, wanted 4"],
    "f(10) returns 3 for me, should be 4": ["f(10): got 3, wanted 4"],
    "`f(10)` returns 3. `f` should return 4.": ["f(10): got 3, wanted 4"],
    "f(10, fill=0) returns 3, `fill` is ignored; it should return 4": ["f(10, fill=0): got 3, wanted 4"],
    "Make f(10) return 4": ["f(10): wanted 4"],
    "f(10) returns 3. This is wrong. 4 is the correct answer.": ["f(10): got 3, wanted 4"],
    "Why does f(10) return 3? Shouldn't it be 4?": ["f(10): got 3, wanted 4"],
    "f(10)[0] is 3 and should be 4": ["f(10)[0]: got 3, wanted 4"],
    "f(3) gives Decimal('1.4'), should be Decimal('1.5')": [
        "f(3): got Decimal('1.4'), wanted Decimal('1.5')"
    ],
    "What I get from `list(chunked([1,2], 1))` is `[[1], [2], []]`; the right answer is `[[1], [2]]`.": [
        "list(chunked([1,2], 1)): got [[1], [2], []], wanted [[1], [2]]"
    ],
}
NOTHING_WANTED = (
    "f(10) takes 3 seconds instead of 1",
    "f(10) returns a list of 3 instead of a list of 4",
    "f(10) should equal g(5)",
    "f(10) should give more than f(5)",
    "f(10) has length 3, should be 4",
    "f(10) should not return 3",
    "f(10) != 4",
    "AssertionError: 3 != 4 when running f(10)",
    "f(10) is slow since 2.0 and needs 512 MB",
    "f(10) returns 3.",
    "See f(10) at line 42 of foo.py (version 3.1).",
    "returns 3 for f(10) and 5 for f(20), should be 4 and 6",
    "f(10) should be 4 or 5",
    "f(10) returns 3. The docs say 4.",
    "f(10) returns 3. g should return 4",
    "f(10) returns 3 and g should return 4",
    "f(10) returns 3 but `limit` should be 4",
    "f(10) returns 3. max_size should be 4",
    "f([1]) returns 3. If the list is empty, it should return 0.",
    "f([1]) returns 3. When called with nothing it should return 0.",
    "f(10) returns 3, but for negative numbers it should return 4",
    "f(10) should return 4 if it is strict",
    "f(10) should return 4 with a limit",
    "On Linux f('a') returns 'x', on Windows it should return 'y'",
    "f([1]) returns 3. If the list is empty this is wrong. It should return 0.",
    "f(10) should return 4 or more",
    "f(10) should return at least 4",
    "f(10) should be less than 4",
)
"""Where no value may be taken for the wanted one."""
NO_CALL = (
    "the length of f(10) should be 4",
    "The first element of `f(10)` should be 4",
    "not f(10) should be True",
    "lambda: f(10) should be 4",
    "2 + f(1) should be 3",
    "f(1) / f(2) should be 3",
    "(f(1) + 2) * 3 should be 9",
    "f(1) & f(2) should be 3",
    "f(x) returns 3 instead of 4",
    "Fix the bug(s) in the module (see above)",
    "other(3) returns 4 instead of 5",
    "f returns 3 instead of 4",
    "f(…) returns 3",
    "open(f(3)) should be 4",
)


@pytest.mark.parametrize("text", REPORTS)
def test_calls_and_values_are_read_with_what_the_report_says_of_them(text: str) -> None:
    assert read(text) == REPORTS[text]


@pytest.mark.parametrize("text", NOTHING_WANTED)
def test_a_value_that_nothing_says_is_wanted_is_not_taken_for_it(text: str) -> None:
    wanted = [
        value.text
        for claim in claims_of(text)
        for value in claim.values
        if value.role == "wanted" and value.kind != "bare"
    ]
    assert wanted == []


@pytest.mark.parametrize("text", NO_CALL)
def test_a_call_that_cannot_be_run_is_none(text: str) -> None:
    assert read(text) == []


SCRIPTS: dict[str, list[str]] = {
    "f(10) returns undefined instead of [1, 2]": ["f(10): got undefined, wanted [1, 2]"],
    "`slugify('a  b')` gives 'a--b', should be 'a-b'": ["slugify('a  b'): got 'a--b', wanted 'a-b'"],
    "```js\nconst s = new Stack()\ns.push(1)\ns.peek() // => undefined, expected 1\n```": [
        "const s = new Stack(); s.push(1): ",
        "const s = new Stack(); s.push(1); s.peek(): got undefined, wanted 1",
    ],
    'parse("x") throws TypeError instead of returning null': ['parse("x"): got TypeError, wanted null'],
    "f({a: 1}) should equal { a: 2 } but got { a: 1 }": ["f({a: 1}): wanted { a: 2 }, got { a: 1 }"],
    "```js\nconsole.log(f(10)) // 3\n```\nexpected 4": ["f(10): got 3, wanted 4"],
    "`f([1, 2], x => x * 2)` returns [2] rather than [2, 4]": [
        "f([1, 2], x => x * 2): got [2], wanted [2, 4]"
    ],
    "f(new Date(0)) is null, should be '1970'": ["f(new Date(0)): got null, wanted '1970'"],
}


@pytest.mark.parametrize("text", SCRIPTS)
def test_calls_of_javascript_are_read_likewise(text: str) -> None:
    assert read(text, SCRIPT) == SCRIPTS[text]


def test_names_are_those_that_are_called() -> None:
    assert names_in("humanize.ordinal(3) and Stack(1).pop() in `f(g(2))`", PYTHON) == (
        "humanize.ordinal",
        "Stack.pop",
        "Stack",
        "f",
        "g",
    )


def test_examples_with_a_plain_value_are_claims_with_their_setup() -> None:
    doc = (
        "Text.\n\n>>> s = Stack()\n>>> s.push(1)\n>>> s.pop()\n1\n>>> s.pop()\nTraceback (most recent call last):\nIndexError: x\n"
        ">>> f(1)\n[1, ...]\n>>> f(2)  # doctest: +SKIP\n3\n>>> f(3)\n<object>\n"
    )
    claims = documented_claims(doc)
    assert [(one.call, one.values[0].text, one.values[0].kind) for one in claims] == [
        ("s.pop()", "1", "literal"),
        ("s.pop()", "IndexError", "error"),
    ]
    assert claims[0].setup == ("s = Stack()", "s.push(1)")


def test_what_an_example_before_took_from_an_iterator_is_setup() -> None:
    doc = ">>> rows = read('a b c')\n>>> skip(rows, 1)\n>>> next(rows)\n'b'\n>>> skip(rows, 9)\nTraceback (most recent call last):\nIndexError: x\n>>> next(rows)\n'c'\n"
    assert [(one.setup, one.call) for one in documented_claims(doc)] == [
        (("rows = read('a b c')", "skip(rows, 1)"), "next(rows)"),
        (("rows = read('a b c')", "skip(rows, 1)", "next(rows)"), "skip(rows, 9)"),
        (("rows = read('a b c')", "skip(rows, 1)", "next(rows)"), "next(rows)"),
    ]


def test_documentation_that_is_no_session_has_none() -> None:
    assert documented_claims(">>>f(1)\n1") == ()


def test_examples_of_jsdoc_are_claims_with_their_setup() -> None:
    doc = (
        "Splits.\n@param {number} sum - f(9) // 3\n@example\nparts(10, 4); // => [3, 3, 2, 2]\n"
        "console.log(parts(4, 2)) // [2, 2]\nparts(9, 3)\n// -> [3, 3, 3]\nparts(1, 1) // about one\n"
        "@example\nconst all = new Sum(3)\nall.total() // returns 3\n// a remark\n@returns {number[]} f(1) // 2\n"
    )
    claims = script_claims(doc)
    assert [(one.call, one.setup, one.values[0].text) for one in claims] == [
        ("parts(10, 4)", (), "[3, 3, 2, 2]"),
        ("parts(4, 2)", (), "[2, 2]"),
        ("parts(9, 3)", (), "[3, 3, 3]"),
        ("all.total()", ("const all = new Sum(3)",), "3"),
    ]
    assert script_claims("parts(10, 4) // 3") == ()
