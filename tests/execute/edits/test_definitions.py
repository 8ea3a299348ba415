import pytest
from testing.packages import shown_symbol

from clean_room_agent.execute.edits.definitions import (
    SymbolSpan,
    definitions,
    moved,
    named,
    only_row,
    shown_ranges,
    symbol_spans,
)

TEXT = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
F, G = SymbolSpan(symbol="f", start=0, end=21), SymbolSpan(symbol="A.g", start=24, end=45)


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


def test_a_symbol_is_where_it_was_shown_or_where_it_stands_once() -> None:
    item = shown_symbol("a.py", TEXT, "g", 5, 6)
    (span,) = symbol_spans([item], TEXT)
    assert TEXT[span.start : span.end] == "def g():\n    return 2"
    later = f"import x\n{TEXT}"
    (span,) = symbol_spans([item], later)
    assert later[span.start : span.end] == "def g():\n    return 2"
    assert symbol_spans([item], TEXT.replace("2", "3")) == ()
    assert symbol_spans([item], f"import x\n{TEXT}{TEXT}") == ()


@pytest.mark.parametrize(("lines", "row"), [(["a"], -1), (["b"], 1), (["a", "b"], 0), (["c"], -1)])
def test_lines_have_a_row_where_they_stand_once(lines: list[str], row: int) -> None:
    assert only_row("a\nb\na", lines) == row


@pytest.mark.parametrize(
    ("quoted", "changed", "length", "kept"),
    [
        ((4, 5), (4, 5), 3, ((0, 23), (26, 47))),
        ((30, 31), (30, 31), 0, ((0, 21), (24, 44))),
        ((22, 23), (22, 23), 5, ((0, 21), (28, 49))),
        ((18, 28), (18, 28), 2, ()),
    ],
)
def test_a_change_moves_what_stands_behind_it_and_stretches_what_holds_it(
    quoted: tuple[int, int], changed: tuple[int, int], length: int, kept: tuple[tuple[int, int], ...]
) -> None:
    assert tuple((span.start, span.end) for span in moved((F, G), quoted, changed, length)) == kept


def test_neighbours_with_blanks_between_them_are_one_range() -> None:
    assert shown_ranges((G, F), TEXT) == ((0, 45),)
    assert shown_ranges((F, G), TEXT.replace("\n\n\n", "\n#\n")) == ((0, 21), (24, 45))


def test_a_symbol_is_named_whole_or_by_its_end() -> None:
    known = (F, G, SymbolSpan(symbol="B.g", start=50, end=60))
    assert [one.symbol for one in named(known, "g")] == ["A.g", "B.g"]
    assert named(known, "f") == (F,)
    assert named(known, "h") == ()


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
        for span in definitions(path, text)
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
