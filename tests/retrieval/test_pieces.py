import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.retrieval import pieces as pieces_module
from clean_room_agent.retrieval.pieces import (
    CodePiece,
    Cut,
    IndexedDefinition,
    definition_name,
    divide_large,
    enclosing_head,
    split_file,
    text_cuts,
)
from clean_room_agent.syntax import sequence_starts

PYTHON = '''\
def large(values):
    """Adds."""
    total = 0  # so far
    # why: zero is special
    if values:
        first = values[0]
        for value in values:
            total += value
            total -= 1
    else:
        total = [
            1,
            2,
        ]
    return total
'''


TYPESCRIPT = """\
export const routes = {
  home: {
    path: "/",
    title: `
  not a cut
`,
  },
  about: { path: "/about" },
};
"""


def define(name: str, start: int, end: int, kind: str = "function") -> IndexedDefinition:
    return IndexedDefinition(
        symbol_id=start, name=name, kind=kind, start_line=start, end_line=end, signature=f"def {name}()"
    )


def numbered(count: int) -> list[str]:
    return [f"line {number}" for number in range(1, count + 1)]


def spans(pieces: tuple[CodePiece, ...]) -> list[tuple[str, int, int]]:
    return [(piece.name, piece.start_line, piece.end_line) for piece in pieces]


def test_the_example_of_the_module_is_divided_as_it_says() -> None:
    rows = re.findall(r"^ {4,5}(\d+)(?:  (.{0,31}))?(.*)$", pieces_module.__doc__ or "", re.MULTILINE)
    lines = [code.rstrip() for _, code, _ in rows]
    named = [(name.strip(), int(number)) for number, _, name in rows if name.strip()]
    definitions = [
        define("LIMIT", 3, 3, "variable"),
        define("add", 6, 7),
        define("Cart", 10, 14, "class"),
        define("Cart.total", 13, 14, "method"),
    ]
    assert lines[9] == "class Cart:"
    found = split_file(lines, definitions, max_lines=4, imports=[(1, 1)])
    assert [(piece.name, piece.start_line) for piece in found] == named


def test_code_around_definitions_becomes_pieces_of_its_own() -> None:
    lines = ["import os", "", "def f():", "    pass", "", "X = 1"]
    pieces = split_file(lines, [define("f", 3, 4)], max_lines=100)
    assert spans(pieces) == [("(header)", 1, 1), ("f", 3, 4), ("(lines 6-6)", 6, 6)]
    assert pieces[0].signature == "import os"


def test_a_long_class_is_divided_into_head_members_and_the_code_between() -> None:
    members = [define("Big.one", 5, 40, "method"), define("Big.two", 50, 90, "method")]
    pieces = split_file(numbered(90), [define("Big", 1, 90, "class"), *members], max_lines=1000)
    assert spans(pieces) == [
        ("Big (head)", 1, 4),
        ("Big.one", 5, 40),
        ("Big (lines 41-49)", 41, 49),
        ("Big.two", 50, 90),
    ]
    head = enclosing_head(pieces, pieces[3])
    assert head == pieces[0]


def test_a_short_class_is_one_piece() -> None:
    pieces = split_file(
        numbered(20), [define("C", 1, 20, "class"), define("C.m", 3, 9, "method")], max_lines=1000
    )
    assert spans(pieces) == [("C", 1, 20)]
    assert enclosing_head(pieces, pieces[0]) is None


def test_a_function_stays_whole_unless_it_is_longer_than_allowed_and_has_members() -> None:
    definitions = [define("outer", 1, 100), define("outer.inner", 10, 30)]
    assert spans(split_file(numbered(100), definitions, max_lines=100)) == [("outer", 1, 100)]
    divided = split_file(numbered(100), definitions, max_lines=99)
    assert [piece.name for piece in divided] == ["outer (head)", "outer.inner", "outer (lines 31-100)"]


def test_long_code_without_definitions_is_cut_at_blank_lines_only() -> None:
    lines = ["describe()" if number % 100 else "" for number in range(1, 251)]
    pieces = split_file(lines, [], max_lines=10)
    assert spans(pieces) == [
        ("(header)", 1, 99),
        ("(lines 101-199)", 101, 199),
        ("(lines 201-250)", 201, 250),
    ]


def test_imports_are_set_apart_from_the_code_around_them() -> None:
    lines = ['"""Doc."""', "", "import os", "import sys", "", "X = 1", "", "def f():", "    pass"]
    pieces = split_file(lines, [define("f", 8, 9)], max_lines=100, imports=[(3, 3), (4, 4)])
    assert spans(pieces) == [("(header)", 1, 1), ("(imports)", 3, 4), ("(lines 6-6)", 6, 6), ("f", 8, 9)]
    assert [piece.kind for piece in pieces] == ["code", "imports", "code", "symbol"]


def test_imports_that_stand_close_together_are_one_piece_and_far_ones_are_two() -> None:
    lines = ["import a", "", "X = 1", "import b", *["Y = 1"] * 10, "import c"]
    pieces = split_file(lines, [], max_lines=100, imports=[(1, 1), (4, 4), (15, 15)])
    assert spans(pieces) == [("(imports)", 1, 4), ("(lines 5-14)", 5, 14), ("(imports)", 15, 15)]


def test_overloads_that_follow_one_another_are_one_piece() -> None:
    definitions = [define("f", 1, 2), define("f", 4, 5), define("f", 7, 9), define("g", 11, 12)]
    lines = numbered(12)
    lines[2] = lines[5] = lines[9] = ""
    pieces = split_file(lines, definitions, max_lines=100)
    assert spans(pieces) == [("f", 1, 9), ("g", 11, 12)]


@given(
    st.lists(
        st.tuples(st.integers(1, 60), st.integers(0, 40), st.sampled_from(["class", "function", "variable"])),
        max_size=12,
    ),
    st.integers(1, 80),
    st.sets(st.integers(1, 80), max_size=10),
)
def test_each_line_with_text_is_in_exactly_one_piece(
    ranges: list[tuple[int, int, str]], max_lines: int, imported: set[int]
) -> None:
    definitions = [
        define(f"n{index}", start, start + more, kind) for index, (start, more, kind) in enumerate(ranges)
    ]
    lines = ["" if number % 7 == 0 else "text" for number in range(1, 81)]
    covered: list[int] = []
    imports = [(number, number) for number in sorted(imported)]
    for piece in split_file(lines, definitions, max_lines=max_lines, imports=imports):
        covered.extend(range(piece.start_line, piece.end_line + 1))
    assert covered == sorted(set(covered))
    assert {number for number, line in enumerate(lines, 1) if line} <= set(covered)


def words(text: str) -> int:
    return len(text.split())


def divide(text: str, path: str, *, most: int, part: int, name: str = "large") -> list[str]:
    lines = text.rstrip("\n").split("\n")
    piece = CodePiece(name=name, kind="symbol", start_line=1, end_line=len(lines), signature=lines[0])
    starts = sequence_starts(text.encode(), path)
    cuts: Sequence[Cut] = text_cuts(lines) if starts is None else starts
    parts = divide_large([piece], lines, count=words, most=most, part=part, cuts=lambda: cuts)
    assert [definition_name(part) for part in parts] == [name] * len(parts)
    return ["\n".join(lines[part.start_line - 1 : part.end_line]) for part in parts]


def test_statements_stay_whole_and_a_comment_stays_with_what_it_explains() -> None:
    assert divide(PYTHON, "a.py", most=20, part=14) == [
        'def large(values):\n    """Adds."""\n    total = 0  # so far',
        "    # why: zero is special\n    if values:\n        first = values[0]",
        "        for value in values:\n            total += value\n            total -= 1\n    else:",
        "        total = [\n            1,\n            2,\n        ]\n    return total",
    ]


def test_members_of_a_literal_are_parts_and_a_string_is_never_cut() -> None:
    assert divide(TYPESCRIPT, "a.ts", most=10, part=9, name="routes") == [
        'export const routes = {\n  home: {\n    path: "/",',
        "    title: `\n  not a cut\n`,\n  },",
        '  about: { path: "/about" },\n};',
    ]


def test_text_without_a_grammar_is_cut_behind_blank_lines_first() -> None:
    assert divide("a b\nc d\n\ne f\ng h\n", "notes.txt", most=5, part=4) == ["a b\nc d", "e f\ng h"]
    assert divide("a b\nc d\ne f\ng h\n", "notes.txt", most=5, part=4) == ["a b\nc d", "e f\ng h"]


@given(
    st.lists(st.sampled_from(["x = 1", "if x:\n    y = 2\n    z = 3", "", "# note", "t = [\n  1,\n  2,\n]"]))
)
def test_parts_hold_every_line_with_text_once_and_in_order(statements: list[str]) -> None:
    text = "\n".join(
        ["def large():", "    pass", *(f"    {one}".replace("\n", "\n    ") for one in statements)]
    )
    joined = "\n".join(divide(f"{text}\n", "a.py", most=4, part=3))
    kept = [line for line in joined.split("\n") if line.strip()]
    assert kept == [line for line in text.split("\n") if line.strip()]
