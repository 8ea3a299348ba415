"""Imports between files."""

import sqlite3

from clean_room_agent.db.curated import dependencies


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
