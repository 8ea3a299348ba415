import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from clean_room_agent.db.connection import Role, connect_file
from clean_room_agent.db.migrations import SCHEMA_FOLDER, migrations, version_of
from clean_room_agent.errors import SchemaError

EVENT = "INSERT INTO events (task_id, kind, detail, timestamp) VALUES ('t', 'k', 'kept', 'now')"
TRIGGERS = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'orchestrator_runs'"
SECOND = """
-- A column with a default, and a table; a comment with a ; in it.
ALTER TABLE events ADD COLUMN weight INTEGER NOT NULL DEFAULT 7;
CREATE TABLE extra (id INTEGER PRIMARY KEY, event_id INTEGER REFERENCES events(id)) STRICT;
CREATE TRIGGER extra_keep BEFORE DELETE ON extra
    BEGIN SELECT RAISE(ABORT, 'kept; always'); END;
INSERT INTO extra (event_id) SELECT id FROM events;
"""


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    """The program's first schema in a place where it can grow."""
    folder = Path(shutil.copytree(SCHEMA_FOLDER, tmp_path / "schema"))
    for later in (folder / "raw").glob("*.sql"):
        if not later.name.startswith("0001"):
            later.unlink()
    return folder


@pytest.fixture
def old(tmp_path: Path, schema: Path) -> Path:
    """A record of the first schema, with a row."""
    path = tmp_path / "raw.sqlite"
    with closing(connect_file("raw", path, schema=schema)) as conn:
        conn.execute(EVENT)
    return path


def tables(conn: sqlite3.Connection) -> set[str]:
    return {row[0] for row in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


@pytest.mark.parametrize("role", ["curated", "raw", "session"])
def test_the_programs_migrations_are_numbered_without_a_gap(role: Role) -> None:
    assert [one.number for one in migrations(SCHEMA_FOLDER / role)][:1] == [1]


def test_an_old_file_is_brought_up_with_its_rows(schema: Path, old: Path) -> None:
    (schema / "raw" / "0002_weights.sql").write_text(SECOND)
    with closing(connect_file("raw", old, schema=schema)) as conn:
        assert version_of(conn) == 2
        assert conn.execute("SELECT detail, weight FROM events").fetchall()[0][:] == ("kept", 7)
        assert conn.execute("SELECT event_id FROM extra").fetchone()[0] == 1
        with pytest.raises(sqlite3.IntegrityError, match="kept; always"):
            conn.execute("DELETE FROM extra")
        assert conn.execute("PRAGMA foreign_keys").fetchone()[0] == 1


def test_runs_of_an_old_record_are_kept_when_their_table_is_made_anew(old: Path) -> None:
    run = "INSERT INTO orchestrator_runs (task_id, repo_path, task_description, status, timestamp) VALUES "
    with closing(sqlite3.connect(old)) as conn:
        conn.execute(f"{run} ('t', '/r', 'words', 'complete', 'now')")
        conn.execute(
            "INSERT INTO task_runs (task_id, repo_path, mode, execute_model, context_window, reserved_tokens, stages, timestamp)"
            " VALUES ('t:a', '/r', 'plan', 'm', 1, 0, '', 'now')"
        )
        conn.execute(
            "INSERT INTO orchestrator_passes (orchestrator_run_id, task_run_id, pass_type, sequence_order, timestamp)"
            " VALUES (1, 1, 'meta_plan', 0, 'now')"
        )
        conn.commit()
        triggers = conn.execute(TRIGGERS).fetchall()
    with closing(connect_file("raw", old)) as conn:
        assert conn.execute("SELECT task_description, status FROM orchestrator_runs").fetchone()[:] == (
            "words",
            "complete",
        )
        assert {row[0] for row in triggers} <= {row[0] for row in conn.execute(TRIGGERS)}
        conn.execute("UPDATE orchestrator_runs SET status = 'unproven'")
        for refused in ("DELETE FROM orchestrator_runs", "UPDATE orchestrator_runs SET task_id = 'u'"):
            with pytest.raises(sqlite3.IntegrityError, match="never"):
                conn.execute(refused)
        with pytest.raises(sqlite3.IntegrityError, match="never replaced"):
            conn.execute(f"{run.replace('INSERT', 'REPLACE')} ('t', '/r', 'other', 'complete', 'now')")


def content(conn: sqlite3.Connection) -> list[object]:
    """All that an empty database is: its tables, indexes and triggers, and the numbers in its header."""
    listing = conn.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid").fetchall()
    pragmas = ("user_version", "application_id", "journal_mode", "encoding", "auto_vacuum", "page_size")
    return [
        *map(tuple, listing),
        *(conn.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas),
        conn.execute("PRAGMA foreign_keys").fetchone()[0],
    ]


@pytest.mark.parametrize("role", ["curated", "raw"])
def test_a_blank_file_ends_like_an_old_one(role: Role, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SCHEMA_FOLDER, tmp_path / "schema"))
    later = migrations(folder / role)[1:]
    for migration in later:
        migration.path.rename(folder / migration.path.name)
    connect_file(role, tmp_path / "old.sqlite", schema=folder).close()
    for migration in later:
        (folder / migration.path.name).rename(migration.path)
    with (
        closing(connect_file(role, tmp_path / "old.sqlite", schema=folder)) as upgraded,
        closing(connect_file(role, tmp_path / "new.sqlite", schema=folder)) as blank,
    ):
        assert version_of(blank) == len(later) + 1
        assert content(blank) == content(upgraded)


def test_a_blank_file_is_given_all_or_nothing(schema: Path, tmp_path: Path) -> None:
    (schema / "raw" / "0002_broken.sql").write_text("CREATE TABLE events (id INTEGER);\n")
    with pytest.raises(SchemaError, match=r"0002_broken\.sql failed"):
        connect_file("raw", tmp_path / "raw.sqlite", schema=schema)
    with closing(sqlite3.connect(tmp_path / "raw.sqlite")) as conn:
        assert (version_of(conn), tables(conn)) == (0, set())
    (schema / "raw" / "0002_broken.sql").write_text(SECOND)
    with closing(connect_file("raw", tmp_path / "raw.sqlite", schema=schema)) as conn:
        assert version_of(conn) == 2
        assert "extra" in tables(conn)


def test_a_failing_migration_leaves_the_file_as_it_was(schema: Path, old: Path) -> None:
    (schema / "raw" / "0002_broken.sql").write_text(
        "CREATE TABLE half (id INTEGER) STRICT;\nCREATE TABLE oops (;\n"
    )
    with pytest.raises(SchemaError, match=r"0002_broken\.sql failed"):
        connect_file("raw", old, schema=schema)
    with closing(sqlite3.connect(old)) as conn:
        assert version_of(conn) == 1
        assert "half" not in tables(conn)
        assert conn.execute("SELECT detail FROM events").fetchone()[0] == "kept"


def test_a_migration_that_breaks_a_reference_is_refused(schema: Path, old: Path) -> None:
    text = "INSERT INTO call_readings (call_id, reading, timestamp) VALUES (99, 'parsed', 'now');\n"
    (schema / "raw" / "0002_dangling.sql").write_text(text)
    with pytest.raises(SchemaError, match="refer to nothing"):
        connect_file("raw", old, schema=schema)
    with closing(sqlite3.connect(old)) as conn:
        assert version_of(conn) == 1


def test_an_old_file_is_not_read_by_a_newer_program_before_it_is_brought_up(schema: Path, old: Path) -> None:
    (schema / "raw" / "0002_weights.sql").write_text(SECOND)
    with pytest.raises(SchemaError, match="has schema 1; this program needs 2") as caught:
        connect_file("raw", old, read_only=True, schema=schema)
    assert caught.value.hint


def test_two_programs_that_migrate_at_once_migrate_once(schema: Path, old: Path) -> None:
    (schema / "raw" / "0002_weights.sql").write_text(SECOND)
    failures: list[BaseException] = []
    barrier = threading.Barrier(4)

    def open_it() -> None:
        barrier.wait()
        try:
            connect_file("raw", old, schema=schema).close()
        except Exception as exc:  # noqa: BLE001 - reported below
            failures.append(exc)

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with closing(connect_file("raw", old, schema=schema)) as conn:
        assert conn.execute("SELECT count(*) FROM extra").fetchone()[0] == 1
