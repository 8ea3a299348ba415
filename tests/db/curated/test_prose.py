"""Documentation and comments, in the order of the file."""

import sqlite3

from clean_room_agent.db.curated import prose, symbols
from clean_room_agent.db.curated.symbols import first_symbol_id

FIRST = first_symbol_id(1)


def test_prose_of_a_file_is_listed_in_its_order_and_goes_together(index: sqlite3.Connection) -> None:
    symbols.insert_symbols(index, [(FIRST, 1, 0, "f", "f", "function", 1, 2, "def f()", None)])
    prose.insert_docstrings(
        index,
        [(FIRST, FIRST, 1, "Of f.", "plain", None), (FIRST + 1, None, 1, "Of the module.", "google", "{}")],
    )
    prose.insert_comments(
        index,
        [
            (FIRST, 1, None, 9, "as it must be", "rationale", 1),
            (FIRST + 1, 1, FIRST, 2, "later", "todo", 0),
            (FIRST + 2, 2, None, 1, "elsewhere", "general", 0),
        ],
    )
    assert [(one.symbol_id, one.content) for one in prose.list_docstrings(index, 1)] == [
        (None, "Of the module."),
        (FIRST, "Of f."),
    ]
    assert [one.content for one in prose.list_rationale(index, 1)] == ["as it must be"]
    prose.delete_prose(index, 1)
    assert prose.list_docstrings(index, 1) == ()
    assert prose.list_rationale(index, 1) == ()
    assert [row[0] for row in index.execute("SELECT content FROM inline_comments")] == ["elsewhere"]
