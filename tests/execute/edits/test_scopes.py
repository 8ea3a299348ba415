import pytest
from testing.packages import shown_symbol

from clean_room_agent.execute.edits.scopes import (
    SymbolSpan,
    moved,
    named,
    only_row,
    shown_ranges,
    symbol_spans,
)

TEXT = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
F, G = SymbolSpan(symbol="f", start=0, end=21), SymbolSpan(symbol="A.g", start=24, end=45)


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
