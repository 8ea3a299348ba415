"""Imports between files, and what modules pass on."""

import sqlite3

from clean_room_agent.db.curated import dependencies, symbols
from clean_room_agent.db.curated.symbols import first_symbol_id

FIRST = first_symbol_id(2)


def edges(conn: sqlite3.Connection, file_id: int) -> list[tuple[int, int, str]]:
    found = dependencies.list_edges(conn, file_id)
    return [(one.source_file_id, one.target_file_id, one.kind) for one in found]


def test_imports_are_seen_from_both_ends(index: sqlite3.Connection) -> None:
    dependencies.insert_dependencies(index, [(1, 2, "import"), (3, 2, "type_ref"), (1, 3, "import")])
    assert [(one.file.path, one.kind) for one in dependencies.list_imports(index, 1)] == [
        ("b.py", "import"),
        ("web/c.ts", "import"),
    ]
    assert [(one.file.path, one.kind) for one in dependencies.list_importers(index, 2)] == [
        ("a.py", "import"),
        ("web/c.ts", "type_ref"),
    ]
    assert edges(index, 3) == [(1, 3, "import"), (3, 2, "type_ref")]


def test_imports_that_are_said_again_stay(index: sqlite3.Connection) -> None:
    dependencies.insert_dependencies(index, [(1, 2, "import"), (1, 3, "import")])
    before = index.total_changes
    dependencies.replace_imports(index, 1, [(1, 2, "import"), (1, 3, "import")])
    assert index.total_changes == before
    dependencies.replace_imports(index, 1, [(1, 3, "type_ref")])
    assert edges(index, 1) == [(1, 3, "type_ref")]


def test_what_a_module_passes_on_is_replaced_by_name(index: sqlite3.Connection) -> None:
    symbols.insert_symbols(index, [(FIRST, 2, 0, "f", "f", "function", 1, 2, "def f()", None)])
    dependencies.insert_reexports(index, [(3, "f", 2, FIRST), (3, "whole", 2, None)])
    found = dependencies.list_reexports(index, 3)
    assert [(one.name, one.file.path, one.symbol and one.symbol.name) for one in found] == [
        ("f", "b.py", "f"),
        ("whole", "b.py", None),
    ]
    before = index.total_changes
    dependencies.replace_reexports(index, 3, [(3, "f", 2, FIRST), (3, "whole", 2, None)])
    assert index.total_changes == before
    dependencies.replace_reexports(index, 3, [(3, "f", 1, None)])
    assert [(one.name, one.file.path) for one in dependencies.list_reexports(index, 3)] == [("f", "a.py")]
