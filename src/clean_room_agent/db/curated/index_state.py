"""Key-value state of an index: settings, last indexed commit, time of the last scan."""

import sqlite3


def get_state(conn: sqlite3.Connection, key: str) -> str | None:
    """The value kept under `key`."""
    row = conn.execute("SELECT value FROM index_state WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def put_state(conn: sqlite3.Connection, key: str, value: str) -> None:
    """`value` is kept under `key`."""
    conn.execute(
        "INSERT INTO index_state (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def seen_changes(conn: sqlite3.Connection) -> tuple[int, int]:
    """Another value whenever the database was changed, by this connection or by another."""
    return conn.total_changes, int(conn.execute("PRAGMA data_version").fetchone()[0])
