import pytest

from clean_room_agent.execute.edits.definitions import definition_spans, definitions, syntax_fault

PYTHON = """\
# about f
@cache
def f():
    return 1

class A:
    x = 1

    def g(self): return 2
"""
SCRIPT = """\
export class A {
  g() { return 1; }
}
export const h = () => 2;
"""
TYPED = """\
function f(a: string): string;
function f(a: number): number;
function f(a: any): any { return a; }
"""


@pytest.mark.parametrize(
    ("path", "text", "first_lines"),
    [
        ("a.py", PYTHON, {"f": "@cache", "A": "class A:", "A.g": "    def g(self): return 2"}),
        (
            "a.js",
            SCRIPT,
            {"A": "export class A {", "A.g": "  g() { return 1; }", "h": "export const h = () => 2;"},
        ),
        ("a.txt", PYTHON, {}),
    ],
)
def test_a_definition_stands_on_its_own_lines(path: str, text: str, first_lines: dict[str, str]) -> None:
    found = {
        span.symbol: text[span.start : span.end].split("\n", maxsplit=1)[0]
        for span in definition_spans(path, text)
    }
    assert found == first_lines


def test_what_shares_its_line_with_other_code_is_none() -> None:
    assert definitions("a.js", "f(); function g() {}\n") == ()


def test_comments_and_overloads_above_a_definition_belong_to_it() -> None:
    assert PYTHON[definitions("a.py", PYTHON)[0].top :].startswith("# about f")
    (typed,) = definitions("a.ts", TYPED)
    assert (typed.top, TYPED[typed.start :].split("\n", maxsplit=1)[0]) == (
        0,
        "function f(a: any): any { return a; }",
    )


def test_a_class_has_the_place_of_its_body() -> None:
    (own,) = [one for one in definitions("a.py", PYTHON) if one.symbol == "A"]
    assert own.body is not None
    assert PYTHON[slice(*own.body)].split("\n", maxsplit=1)[0] == "    x = 1"
    (other,) = [one for one in definitions("a.js", SCRIPT) if one.symbol == "A"]
    assert other.body is not None
    assert SCRIPT[slice(*other.body)].strip() == "g() { return 1; }"


def test_the_first_syntax_error_is_named_where_there_was_none_before() -> None:
    assert syntax_fault("a.py", "x = 1\n", "x = (\ny = 2\n").startswith("the file no longer parses")
    assert syntax_fault("a.py", "x = (\n", "x = ((\n") == ""
    assert syntax_fault("a.txt", "x", "(") == ""
