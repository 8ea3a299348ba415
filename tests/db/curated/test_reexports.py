"""What modules pass on."""

import sqlite3

from clean_room_agent.db.curated import reexports, symbols
from clean_room_agent.db.curated.symbols import first_symbol_id

FIRST = first_symbol_id(2)


def test_what_a_module_passes_on_is_replaced_by_name(index: sqlite3.Connection) -> None:
    symbols.insert_symbols(index, [(FIRST, 2, 0, "f", "f", "function", 1, 2, "def f()", None)])
    reexports.insert_reexports(index, [(3, "f", 2, FIRST), (3, "whole", 2, None)])
    found = reexports.list_reexports(index, 3)
    assert [(one.name, one.file.path, one.symbol and one.symbol.name) for one in found] == [
        ("f", "b.py", "f"),
        ("whole", "b.py", None),
    ]
    before = index.total_changes
    reexports.replace_reexports(index, 3, [(3, "f", 2, FIRST), (3, "whole", 2, None)])
    assert index.total_changes == before
    reexports.replace_reexports(index, 3, [(3, "f", 1, None)])
    assert [(one.name, one.file.path) for one in reexports.list_reexports(index, 3)] == [("f", "a.py")]
