"""What the index was made from."""

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


def delete_state(conn: sqlite3.Connection, key: str) -> None:
    """Nothing is kept under `key`."""
    conn.execute("DELETE FROM index_state WHERE key = ?", (key,))


def list_state(conn: sqlite3.Connection, prefix: str) -> tuple[tuple[str, str], ...]:
    """The keys that begin with `prefix` (ASCII), each with its value, by key."""
    query = "SELECT key, value FROM index_state WHERE key >= ? AND key < ? ORDER BY key"
    return tuple(
        (row[0], row[1]) for row in conn.execute(query, (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)))
    )


def seen_changes(conn: sqlite3.Connection) -> tuple[int, int]:
    """Another value whenever the database was changed, by this connection or by another."""
    return conn.total_changes, int(conn.execute("PRAGMA data_version").fetchone()[0])
