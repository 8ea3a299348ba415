"""What files say of names, and who looked up what in whom."""

import sqlite3

import pytest

from clean_room_agent.db.curated import names, symbols
from clean_room_agent.db.curated.names import (
    ANYWHERE,
    COLUMNS,
    OF_A_FILE,
    Resolution,
    StoredNames,
    insert_resolutions,
    replace_resolution,
)

FIRST = symbols.first_symbol_id(1)


def test_what_a_file_says_is_replaced_and_forgotten(index: sqlite3.Connection) -> None:
    names.insert_names(index, [(1, StoredNames("[]", "{}", "[]")), (2, StoredNames("[1]", None, None))])
    names.insert_names(index, [(1, StoredNames("[2]", "{}", "[]"))])
    assert names.get_names(index, 1) == StoredNames("[2]", "{}", "[]")
    assert list(names.list_imports(index)) == [(1, "a.py", "[2]"), (2, "b.py", "[1]")]
    names.delete_names(index, 1)
    assert names.get_names(index, 1) is None


BEFORE = Resolution(
    dependencies=[(1, 2, "import"), (1, 3, "import")],
    symbol_references=[(FIRST, FIRST + 1, "call", 0.5), (FIRST + 1, FIRST, "name", 1.0)],
    lookups=[(ANYWHERE, 1, '["rare"]'), (2, 1, '["K","K.m"]')],
    reexports=[(1, "f", 2, FIRST), (1, "whole", 2, None)],
    import_targets=[(1, '{"./b":2,"react":null}')],
)
AFTER = Resolution(
    dependencies=[(1, 3, "type_ref")],
    symbol_references=[(FIRST, FIRST + 1, "call", 0.95), (FIRST + 1, FIRST, "name", 1.0)],
    lookups=[(2, 1, '["K"]')],
    reexports=[(1, "f", 3, None)],
    import_targets=[(1, '{"./b":null}')],
)


@pytest.fixture
def resolved(index: sqlite3.Connection) -> sqlite3.Connection:
    rows = [
        (FIRST + place, 1, place, name, name, "function", 1, 2, name, None) for place, name in enumerate("fg")
    ]
    symbols.insert_symbols(index, rows)
    others = Resolution(dependencies=[(2, 3, "import")], lookups=[(2, 3, '["other"]')])
    insert_resolutions(index, [BEFORE, others])
    return index


def stored_resolution(conn: sqlite3.Connection) -> Resolution:
    """That of the first file."""
    return Resolution(
        *(
            [
                tuple(row)
                for row in conn.execute(
                    f"SELECT {', '.join(columns)} FROM {table} WHERE {OF_A_FILE[table]} ORDER BY 1, 2", (1,)
                )
            ]
            for table, columns in COLUMNS.items()
        )
    )


def test_a_resolution_is_replaced_and_what_is_right_already_stays(resolved: sqlite3.Connection) -> None:
    assert stored_resolution(resolved) == BEFORE
    before = resolved.total_changes
    replace_resolution(resolved, 1, BEFORE)
    assert resolved.total_changes == before
    kept = "SELECT id FROM symbol_references WHERE reference_kind = 'name'"
    known = resolved.execute(kept).fetchone()[0]
    replace_resolution(resolved, 1, AFTER)
    assert stored_resolution(resolved) == AFTER
    assert resolved.execute(kept).fetchone()[0] == known
    replace_resolution(resolved, 1, Resolution())
    assert stored_resolution(resolved) == Resolution([], [], [], [], [])
    assert names.find_users(resolved, 2) == {3}


def test_where_imports_lead_is_known(resolved: sqlite3.Connection) -> None:
    assert names.get_targets(resolved, 1) == {"./b": 2, "react": None}
    assert names.get_targets(resolved, 2) == {}


def test_whoever_looked_up_a_name_is_found(resolved: sqlite3.Connection) -> None:
    assert names.find_lookups(resolved, 2, ["K.m", "unknown"]) == {1}
    assert names.find_lookups(resolved, 2, []) == set()
    assert names.find_lookups(resolved, ANYWHERE, ["rare"]) == {1}
    assert names.find_users(resolved, 2) == {1, 3}
