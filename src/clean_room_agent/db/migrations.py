"""Numbered `.sql` files bring a database to this program's schema: an old one step by step, each in one transaction with its number."""

import functools
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from clean_room_agent.errors import SchemaError

SCHEMA_FOLDER = Path(__file__).parent / "schema"
NAME = re.compile(r"(\d{4})_\w+\.sql\Z")


class Migration(Struct, frozen=True, kw_only=True):
    """One file, which leads from the previous schema to `number`."""

    number: int
    path: Path

    @property
    def text(self) -> str:
        """The content of the file."""
        return self.path.read_text(encoding="utf-8")

    def statements(self) -> Iterator[str]:
        """The file's statements, one by one: `executescript` would commit between them."""
        pending = ""
        for line in self.text.splitlines(keepends=True):
            pending += line
            if sqlite3.complete_statement(pending):
                yield pending
                pending = ""
        if any(line.strip() and not line.lstrip().startswith("--") for line in pending.splitlines()):
            raise SchemaError(f"{self.path}: the last statement has no end")


def migrations(folder: Path) -> tuple[Migration, ...]:
    """The folder's migrations, in order.

    Raises:
        SchemaError: they are not numbered 1, 2, 3 without a gap.
    """
    matches = ((NAME.match(path.name), path) for path in sorted(folder.glob("*.sql")))
    found = tuple(Migration(number=int(match.group(1)), path=path) for match, path in matches if match)
    if not found or [one.number for one in found] != list(range(1, len(found) + 1)):
        raise SchemaError(f"{folder} does not hold migrations 0001, 0002, ... without a gap")
    return found


def version_of(conn: sqlite3.Connection) -> int:
    """The number of the last migration that was applied to the database; 0 for a blank one."""
    return int(conn.execute("PRAGMA user_version").fetchone()[0])


def migrate(conn: sqlite3.Connection, folder: Path, *, application_id: int) -> None:
    """Apply to the database (in autocommit mode) every migration of `folder` that it lacks.

    A blank one gets all of them in one commit, as a copy of an in-memory database: creating tables in their first form
    and syncing every change takes several times as long. No other process may create the same database meanwhile.

    Raises:
        SchemaError: a migration failed; the database is as the one before left it.
    """
    found = migrations(folder)
    if is_blank(conn):
        with closing(sqlite3.connect(":memory:")) as made:
            made.deserialize(_migrated_database(found, tuple(each.text for each in found), application_id))
            made.backup(conn)
    else:
        _bring_up(conn, found, application_id)


def is_blank(conn: sqlite3.Connection) -> bool:
    """Whether the database is empty, as in a file that was just created."""
    return version_of(conn) == 0 and conn.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0


@functools.cache
def _migrated_database(found: tuple[Migration, ...], _texts: tuple[str, ...], application_id: int) -> bytes:
    """The file of a database with these migrations and only their rows; cached as long as no text changes."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
        _bring_up(conn, found, application_id)
        return conn.serialize()


def _bring_up(conn: sqlite3.Connection, found: tuple[Migration, ...], application_id: int) -> None:
    for migration in found:
        if version_of(conn) < migration.number:
            _apply_migration(conn, migration, application_id)


def _apply_migration(conn: sqlite3.Connection, migration: Migration, application_id: int) -> None:
    conn.execute(
        "PRAGMA foreign_keys = OFF"
    )  # a table is rebuilt by dropping the old one; checked before the commit
    conn.execute("BEGIN IMMEDIATE")
    try:
        if version_of(conn) < migration.number:  # another process may have been quicker
            for statement in migration.statements():
                conn.execute(statement)
            if conn.execute("PRAGMA foreign_key_check").fetchone() is not None:
                raise SchemaError(f"{migration.path.name} leaves rows that refer to nothing")
            conn.execute(f"PRAGMA application_id = {application_id}")
            conn.execute(f"PRAGMA user_version = {migration.number}")
        conn.execute("COMMIT")
    except sqlite3.Error as exc:
        raise SchemaError(
            f"{migration.path.name} failed: {exc}", hint="the database is as it was before"
        ) from exc
    finally:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        conn.execute("PRAGMA foreign_keys = ON")
