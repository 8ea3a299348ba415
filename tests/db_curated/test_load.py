import contextlib
from pathlib import Path

import pytest

from clean_room_agent.db.connection import connect_file, get_connection
from clean_room_agent.db.curated.load import new_database
from clean_room_agent.db.curated.state import delete_state, get_state, list_state, put_state, seen_changes


def indexes(path: Path) -> set[str]:
    with contextlib.closing(connect_file("curated", path)) as conn:
        return {
            row[0]
            for row in conn.execute("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
        }


def test_a_loaded_database_has_all_indexes_and_stands_alone(tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite"
    with new_database(path) as conn:
        put_state(conn, "a", "1")
        assert not path.exists()
    assert [one.name for one in tmp_path.iterdir()] == ["new.sqlite"]
    connect_file("curated", tmp_path / "usual.sqlite").close()
    assert indexes(path) == indexes(tmp_path / "usual.sqlite")
    with contextlib.closing(connect_file("curated", path, read_only=True)) as conn:
        assert get_state(conn, "a") == "1"
        assert conn.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


def fail_to_load(path: Path) -> None:
    with new_database(path) as conn:
        put_state(conn, "a", "2")
        raise ZeroDivisionError


def test_a_load_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_to_load(tmp_path / "new.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_state_is_kept_by_key_and_found_by_prefix(tmp_path: Path) -> None:
    with contextlib.closing(get_connection("curated", repo_path=tmp_path)) as conn:
        for key in ("p:b", "p:a", "q:c", "p"):
            put_state(conn, key, key.upper())
        put_state(conn, "p:a", "again")
        assert list_state(conn, "p:") == (("p:a", "again"), ("p:b", "P:B"))
        delete_state(conn, "p:b")
        assert list_state(conn, "p:") == (("p:a", "again"),)
        assert get_state(conn, "none") is None


def test_changes_by_any_connection_are_seen(tmp_path: Path) -> None:
    with (
        contextlib.closing(get_connection("curated", repo_path=tmp_path)) as one,
        contextlib.closing(get_connection("curated", repo_path=tmp_path)) as other,
    ):
        before = seen_changes(one)
        assert seen_changes(one) == before
        put_state(other, "a", "1")
        assert (after := seen_changes(one)) != before
        put_state(one, "a", "2")
        assert seen_changes(one) != after
