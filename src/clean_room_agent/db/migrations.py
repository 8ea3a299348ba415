"""Numbered `.sql` files bring a database to this program's schema, each in one transaction with its number."""

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clean_room_agent.errors import SchemaError

SCHEMA_FOLDER = Path(__file__).parent / "schema"
NAME = re.compile(r"(\d{4})_\w+\.sql\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One file: what leads from the schema before to `number`."""

    number: int
    path: Path

    def statements(self) -> Iterator[str]:
        """The file's statements, one by one: `executescript` would commit between them."""
        pending = ""
        for line in self.path.read_text(encoding="utf-8").splitlines(keepends=True):
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
    """The number of the last migration that the database has seen; 0 for a blank one."""
    return int(conn.execute("PRAGMA user_version").fetchone()[0])


def migrate(conn: sqlite3.Connection, folder: Path, *, application_id: int) -> None:
    """The database (in autocommit mode) has seen every migration of `folder`.

    Raises:
        SchemaError: a migration failed; the database stands where the one before left it.
    """
    for migration in migrations(folder):
        if version_of(conn) < migration.number:
            _apply(conn, migration, application_id)


def _apply(conn: sqlite3.Connection, migration: Migration, application_id: int) -> None:
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
