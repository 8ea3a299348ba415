from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clean_room_agent.retrieval.code.pieces import Piece, definition_name
from clean_room_agent.retrieval.code.splitting import Cut, divide_large, text_cuts
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


def words(text: str) -> int:
    return len(text.split())


def divide(text: str, path: str, *, most: int, part: int, name: str = "large") -> list[str]:
    lines = text.rstrip("\n").split("\n")
    piece = Piece(name=name, kind="symbol", start_line=1, end_line=len(lines), signature=lines[0])
    starts = sequence_starts(text.encode(), path)
    cuts: Sequence[Cut] = text_cuts(lines) if starts is None else starts
    parts = divide_large([piece], lines, count=words, most=most, part=part, cuts=lambda: cuts)
    assert [definition_name(part) for part in parts] == [name] * len(parts)
    return ["\n".join(lines[part.start_line - 1 : part.end_line]) for part in parts]


def test_a_piece_that_fits_stays_as_it_is() -> None:
    assert divide(PYTHON, "a.py", most=60, part=5) == [PYTHON.rstrip("\n")]


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


@pytest.mark.parametrize("path", ["broken.py", "broken.ts"])
def test_a_file_with_a_syntax_error_is_cut_as_text(path: str) -> None:
    assert sequence_starts(b"def (:\n  {{", path) is None


@settings(max_examples=60)
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
