"""Symbols and the uses of one by another, replaced with as few writes as what changed needs; and what is said of them."""

import sqlite3

import pytest

from clean_room_agent.db.curated import symbols
from clean_room_agent.db.curated.names import Resolution, insert_resolutions
from clean_room_agent.db.curated.symbols import SymbolTuple, first_symbol_id

FIRST = first_symbol_id(1)


def symbol(
    place: int, name: str, *, line: int = 1, kind: str = "function", parent: int | None = None, file: int = 1
) -> SymbolTuple:
    number = first_symbol_id(file) + place
    return (number, file, place, name.rpartition(".")[2], name, kind, line, line + 1, f"def {name}", parent)


def stored(conn: sqlite3.Connection, file_id: int = 1) -> list[tuple[int, str, int]]:
    return [
        (one.id - FIRST, one.qualified_name, one.start_line) for one in symbols.list_symbols(conn, file_id)
    ]


def test_symbols_that_stay_keep_the_references_to_them(index: sqlite3.Connection) -> None:
    symbols.insert_symbols(index, [symbol(0, "f"), symbol(1, "g", line=5), symbol(2, "h", line=9)])
    insert_resolutions(
        index,
        [
            Resolution(
                symbol_references=[(FIRST + 2, FIRST, "call", 1.0), (FIRST + 2, FIRST + 1, "call", 1.0)]
            )
        ],
    )
    symbols.replace_symbols(
        index,
        symbols.list_rows(index, 1),
        [symbol(0, "f", line=3), symbol(2, "h", line=9), symbol(3, "new", line=12)],
    )
    assert stored(index) == [(0, "f", 3), (2, "h", 9), (3, "new", 12)]
    assert [one.symbol.name for one in symbols.list_callees(index, FIRST + 2)] == ["f"]


@pytest.mark.parametrize(
    ("after", "touched"),
    [
        ([symbol(0, "K", kind="class"), symbol(1, "K.m", line=2, kind="method", parent=FIRST)], 0),
        ([symbol(0, "K", kind="class"), symbol(1, "K.m", line=3, kind="method", parent=FIRST)], 1),
        ([symbol(0, "K", line=2, kind="class"), symbol(1, "K.m", line=3, kind="method", parent=FIRST)], 2),
        ([symbol(0, "K", kind="class"), symbol(1, "m", line=2)], 1),
        ([symbol(0, "K", kind="class")], 1),
        ([], 2),
    ],
)
def test_only_rows_that_differ_are_written(
    index: sqlite3.Connection, after: list[SymbolTuple], touched: int
) -> None:
    symbols.insert_symbols(
        index, [symbol(0, "K", kind="class"), symbol(1, "K.m", line=2, kind="method", parent=FIRST)]
    )
    before = index.total_changes
    symbols.replace_symbols(index, symbols.list_rows(index, 1), after)
    assert index.total_changes - before == touched
    assert symbols.list_rows(index, 1) == after


def test_a_name_is_unique_among_the_callables_of_its_language(index: sqlite3.Connection) -> None:
    symbols.insert_symbols(index, [symbol(0, "run"), symbol(1, "K.run", kind="variable"), symbol(2, "two")])
    symbols.insert_symbols(index, [symbol(0, "two", file=2), symbol(0, "run", file=3)])
    assert symbols.find_unique(index, "run", ["python"]) == (1, 0)
    assert symbols.find_unique(index, "run", ["javascript", "typescript"]) == (3, 0)
    assert symbols.find_unique(index, "two", ["python"]) is None
    assert symbols.find_unique(index, "none", ["python"]) is None
    assert symbols.count_named(index, "two", ["python"]) == 2
    assert symbols.callables_in(symbols.list_rows(index, 1)) == {"run": ("run",), "two": ("two",)}
    assert symbols.files_defining(index, "run") == [1, 3]


def test_prose_of_a_file_is_listed_in_its_order_and_goes_together(index: sqlite3.Connection) -> None:
    symbols.insert_symbols(index, [(FIRST, 1, 0, "f", "f", "function", 1, 2, "def f()", None)])
    symbols.insert_docstrings(
        index,
        [(FIRST, FIRST, 1, "Of f.", "plain", None), (FIRST + 1, None, 1, "Of the module.", "google", "{}")],
    )
    symbols.insert_comments(
        index,
        [
            (FIRST, 1, None, 9, "as it must be", "rationale", 1),
            (FIRST + 1, 1, FIRST, 2, "later", "todo", 0),
            (FIRST + 2, 2, None, 1, "elsewhere", "general", 0),
        ],
    )
    assert [(one.symbol_id, one.content) for one in symbols.list_docstrings(index, 1)] == [
        (None, "Of the module."),
        (FIRST, "Of f."),
    ]
    assert [one.content for one in symbols.list_rationale(index, 1)] == ["as it must be"]
    symbols.delete_prose(index, 1)
    assert symbols.list_docstrings(index, 1) == ()
    assert symbols.list_rationale(index, 1) == ()
    assert [row[0] for row in index.execute("SELECT content FROM inline_comments")] == ["elsewhere"]
