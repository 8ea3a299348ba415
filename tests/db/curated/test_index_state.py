"""What the index was made from, by key."""

import sqlite3

from clean_room_agent.db.curated import index_state


def test_a_value_is_kept_until_another_is(index: sqlite3.Connection) -> None:
    assert index_state.get_state(index, "key") is None
    index_state.put_state(index, "key", "one")
    index_state.put_state(index, "key", "two")
    assert index_state.get_state(index, "key") == "two"


def test_a_change_is_seen(index: sqlite3.Connection) -> None:
    before = index_state.seen_changes(index)
    assert index_state.seen_changes(index) == before
    index_state.put_state(index, "key", "one")
    assert index_state.seen_changes(index) != before
