import contextlib
import sqlite3
from pathlib import Path

import pytest

from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.curated.bulk_load import IndexDraft, new_draft, remove_draft
from clean_room_agent.db.curated.files import get_index_state, put_index_state
from clean_room_agent.errors import RecordError

ADAPTER = """
INSERT INTO adapter_metadata (stage_name, base_model, model_tag, version, active, deployed_at)
VALUES ('scope', 'reasoning', 'tuned', '1', 1, '2026-01-01T00:00:00+00:00')
"""


def indexes(path: Path) -> set[str]:
    with contextlib.closing(connect_file("curated", path)) as conn:
        return {
            row[0]
            for row in conn.execute("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
        }


def fill(draft: IndexDraft, value: str) -> None:
    """The draft holds one state, written through a connection of its own."""
    draft.create()
    conn = draft.connect()
    with draft.writing(conn):
        put_index_state(conn, "a", value)
    with draft.writing(conn):
        draft.create_indexes(conn)
    conn.close()


def state_of(path: Path) -> str | None:
    with contextlib.closing(connect_file("curated", path, read_only=True)) as conn:
        return get_index_state(conn, "a")


def test_a_published_draft_has_all_indexes_and_stands_alone(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    with new_draft(path) as draft:
        fill(draft, "1")
        assert not path.exists()
        draft.publish(path)
    assert [one.name for one in tmp_path.iterdir()] == ["index.sqlite"]
    connect_file("curated", tmp_path / "usual.sqlite").close()
    assert indexes(path) == indexes(tmp_path / "usual.sqlite")
    assert state_of(path) == "1"
    with contextlib.closing(connect_file("curated", path, read_only=True)) as conn:
        assert conn.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


def test_a_reader_sees_the_old_index_until_it_looks_again(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    with contextlib.closing(connect_file("curated", path)) as conn:
        put_index_state(conn, "a", "old")
    with contextlib.closing(connect_file("curated", path, read_only=True)) as reader:
        reader.execute("BEGIN")
        assert get_index_state(reader, "a") == "old"
        with new_draft(path) as draft:
            fill(draft, "new")
            draft.publish(path)
        assert get_index_state(reader, "a") == "old"
        reader.execute("COMMIT")
        assert get_index_state(reader, "a") == "new"
    assert indexes(path) == indexes(tmp_path / "index.sqlite")


def test_what_is_not_derived_is_carried_over_by_path_and_hash(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    with contextlib.closing(connect_file("curated", path)) as conn:
        put_files(conn, (1, "same.py", "0"), (2, "other.py", "0"), (3, "gone.py", "0"))
        conn.execute(
            "INSERT INTO file_metadata (file_id, purpose) VALUES (1, 'Same'), (2, 'Other'), (3, 'Gone')"
        )
        conn.execute(ADAPTER)
    with new_draft(path) as draft:
        draft.create()
        conn = draft.connect()
        put_files(conn, (7, "same.py", "0"), (8, "other.py", "1"), (9, "new.py", "0"))
        assert draft.carry_over(conn, path) == (2, 1)
        assert conn.execute("SELECT file_id, purpose FROM file_metadata").fetchall() == [(7, "Same")]
        assert conn.execute("SELECT model_tag FROM adapter_metadata").fetchall() == [("tuned",)]
        conn.close()


def put_files(conn: sqlite3.Connection, *rows: tuple[int, str, str]) -> None:
    conn.execute("INSERT INTO repos (id, path, indexed_at) VALUES (1, '/r', '2026-01-01T00:00:00+00:00')")
    conn.executemany(
        "INSERT INTO files (id, repo_id, path, language, content_hash, size_bytes) VALUES (?, 1, ?, 'python', ?, 1)",
        rows,
    )


def fail_to_fill(path: Path) -> None:
    with new_draft(path) as draft:
        fill(draft, "2")
        raise ZeroDivisionError


def test_a_draft_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_to_fill(tmp_path / "index.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_of_a_draft_is_removed(tmp_path: Path) -> None:
    for name in (
        "index.sqlite.new",
        "index.sqlite.new.lock",
        "index.sqlite.1a2b.new-journal",
        "index.sqlite",
    ):
        (tmp_path / name).touch()
    remove_draft(tmp_path / "index.sqlite")
    assert [one.name for one in tmp_path.iterdir()] == ["index.sqlite"]


def test_a_worker_that_outlived_its_run_writes_into_no_other_draft(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    with new_draft(path) as first:
        first.create()
        remove_draft(path)  # as the next run does, when the first was killed
        with new_draft(path) as second:
            fill(second, "2")
            with pytest.raises(RecordError, match="gone"):
                first.connect()
            second.publish(path)
    assert [one.name for one in tmp_path.iterdir()] == ["index.sqlite"]
    assert state_of(path) == "2"
