from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.db.curated.files import FileRow
from clean_room_agent.retrieval.code.pieces import Definition, Piece
from clean_room_agent.retrieval.context_files import FileText
from clean_room_agent.retrieval.selection.excerpts import (
    NOTES_SHOWN,
    QUOTED_CHARS,
    first_line,
    names_outline,
    nearest_lines,
    numbered,
    quoted,
    short_summary,
    summary,
)
from clean_room_agent.retrieval.stage_source import FileView

LINES = ["total = 0", "    for price in prices:", "        total += price", "", "return round(total)"]


def test_the_lines_that_hold_what_is_asked_for_come_in_the_order_of_the_file() -> None:
    assert nearest_lines(LINES, {"price": 1.0, "round": 1.0}, most=3) == (
        (2, "for price in prices:"),
        (3, "total += price"),
        (5, "return round(total)"),
    )


def test_of_many_lines_those_with_the_rarest_words_are_shown() -> None:
    assert nearest_lines(LINES, {"total": 1.0, "round": 1.0}, most=1) == ((5, "return round(total)"),)


def test_a_word_that_weighs_more_counts_more() -> None:
    lines = ["alpha", "beta"]
    assert nearest_lines(lines, {"alpha": 0.3, "beta": 1.0}, most=1) == ((2, "beta"),)
    assert nearest_lines(lines, {"alpha": 1.0, "beta": 1.0}, most=1) == ((1, "alpha"),)


def test_lines_of_a_part_keep_the_numbers_of_the_file() -> None:
    assert nearest_lines(LINES, {"round": 1.0}, most=2, first=40) == ((44, "return round(total)"),)


def test_nothing_asked_for_or_nothing_found_is_nothing_shown() -> None:
    assert nearest_lines(LINES, {}, most=3) == ()
    assert nearest_lines(LINES, {"voucher": 1.0}, most=3) == ()


def test_a_very_long_line_is_cut_and_says_so() -> None:
    assert quoted("x" * QUOTED_CHARS) == "x" * QUOTED_CHARS
    assert quoted("  " + "x" * (QUOTED_CHARS + 1)) == "x" * QUOTED_CHARS + " [cut]"


def test_each_line_stands_after_its_number() -> None:
    assert numbered(((2, "a"), (10, "b"))) == "2: a\n10: b\n"


@given(
    st.lists(st.text(alphabet="ab _=", max_size=12), max_size=12),
    st.dictionaries(st.sampled_from(["a", "b", "aa", "ab"]), st.floats(0.1, 2), max_size=3),
    st.integers(1, 4),
)
def test_what_is_quoted_are_lines_of_the_file(lines: list[str], terms: dict[str, float], most: int) -> None:
    found = nearest_lines(lines, terms, most=most)
    assert len(found) <= most
    assert [number for number, _ in found] == sorted({number for number, _ in found})
    assert all(text == lines[number - 1].strip() for number, text in found)


def piece(**fields: object) -> Piece:
    values: dict[str, object] = {
        "name": "f",
        "kind": "symbol",
        "start_line": 1,
        "end_line": 2,
        "signature": "def f(a):",
    }
    return Piece(**{**values, **fields})  # type: ignore[arg-type]


def test_a_summary_has_signature_documentation_and_the_first_reasons() -> None:
    notes = tuple(f"(line {number}: because)" for number in range(NOTES_SHOWN + 2))
    shown = summary(piece(doc="Do it.\n\nWell.", notes=notes))
    assert shown.splitlines() == [
        "def f(a):",
        "    Do it.",
        "",
        "    Well.",
        *(f"    {note}" for note in notes[:NOTES_SHOWN]),
    ]


def test_a_short_summary_has_one_line_of_each() -> None:
    assert (
        short_summary(piece(signature="def f(\n    a,\n):", doc="Do it.\n\nWell."))
        == "def f( a, ):\n    Do it.\n"
    )
    assert short_summary(piece()) == "def f(a):\n"
    assert short_summary(piece(signature="x" * 310)) == f"{'x' * 300} (and 10 more characters)\n"


def test_a_first_line_is_the_first_that_is_not_blank() -> None:
    assert first_line("\n  \n  a = 1\nb = 2\n") == "a = 1\n"


def view(*entries: tuple[str, str, int, int]) -> FileView:
    definitions = tuple(
        Definition(symbol_id=start, name=name, kind=kind, start_line=start, end_line=end, signature="")
        for name, kind, start, end in entries
    )
    row = FileRow(id=1, path="a.py", language="python", content_hash="", size_bytes=0, parse_error=None)
    text = FileText(path="a.py", lines=("x",) * 9, content_hash="")
    return FileView(row=row, text=text, definitions=definitions, pieces=())


def test_an_outline_names_the_nearest_definitions_in_the_order_of_their_lines() -> None:
    entries = view(
        ("A", "class", 1, 6), ("A.f", "method", 2, 3), ("g", "function", 7, 8), ("LIMIT", "variable", 9, 9)
    )
    assert names_outline(entries, lambda entry: -entry.start_line, most=9) == "1-6 A\n2-3 A.f\n7-8 g\n"
    assert (
        names_outline(entries, lambda entry: entry.start_line, most=2)
        == "2-3 A.f\n7-8 g\n(1 more definitions)\n"
    )


def test_what_is_defined_within_a_function_is_not_named() -> None:
    entries = view(("f", "function", 1, 5), ("f.inner", "function", 2, 3))
    assert names_outline(entries, lambda _: 0.0, most=9) == "1-5 f\n"


def test_a_file_without_definitions_says_how_long_it_is() -> None:
    assert names_outline(view(), lambda _: 0.0, most=9) == "(9 lines without definitions)\n"
