"""What files say of names, and who looked up what in whom."""

import sqlite3

from clean_room_agent.db.curated import names
from clean_room_agent.db.curated.names import ANYWHERE, StoredNames

LOOKUPS = {2: {"K", "K.m"}, ANYWHERE: {"rare"}}


def stored(conn: sqlite3.Connection) -> list[tuple[int, str]]:
    query = "SELECT target_file_id, names FROM lookups WHERE source_file_id = 1 ORDER BY target_file_id"
    return [(row[0], row[1]) for row in conn.execute(query)]


def test_what_a_file_says_is_replaced_and_forgotten(index: sqlite3.Connection) -> None:
    names.insert_names(index, [(1, StoredNames("[]", "{}", "[]")), (2, StoredNames("[1]", None, None))])
    names.insert_names(index, [(1, StoredNames("[2]", "{}", "[]"))])
    assert names.get_names(index, 1) == StoredNames("[2]", "{}", "[]")
    assert list(names.list_imports(index)) == [(1, "a.py", "[2]"), (2, "b.py", "[1]")]
    names.delete_names(index, 1)
    assert names.get_names(index, 1) is None


def test_where_imports_lead_is_replaced_and_forgotten(index: sqlite3.Connection) -> None:
    names.insert_targets(index, 1, {"./b": 2, "react": None})
    before = index.total_changes
    names.replace_targets(index, 1, {"react": None, "./b": 2})
    assert index.total_changes == before
    assert names.get_targets(index, 1) == {"./b": 2, "react": None}
    names.replace_targets(index, 1, {"./b": None})
    assert names.get_targets(index, 1) == {"./b": None}
    names.replace_targets(index, 1, {})
    assert names.get_targets(index, 1) == {}


def test_whoever_looked_up_a_name_is_found(index: sqlite3.Connection) -> None:
    names.insert_lookups(index, 1, LOOKUPS)
    names.insert_lookups(index, 3, {2: {"other"}})
    assert names.find_lookups(index, 2, ["K.m", "unknown"]) == {1}
    assert names.find_lookups(index, 2, []) == set()
    assert names.find_lookups(index, ANYWHERE, ["rare"]) == {1}
    assert names.find_users(index, 2) == {1, 3}


def test_lookups_that_are_said_again_stay(index: sqlite3.Connection) -> None:
    names.insert_lookups(index, 1, LOOKUPS)
    before = index.total_changes
    names.replace_lookups(index, 1, LOOKUPS)
    assert index.total_changes == before
    names.replace_lookups(index, 1, {2: {"K"}, 3: {"x"}})
    assert stored(index) == [(2, '["K"]'), (3, '["x"]')]
