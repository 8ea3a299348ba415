"""Checks that any of the databases is whole: its pages, texts and schema."""

import functools
import json
import sqlite3
from collections.abc import Callable
from typing import ParamSpec

from clean_room_agent.db.connection import Role
from clean_room_agent.db.migrations import SCHEMA_FOLDER, migrations, version_of
from clean_room_agent.db.rows import SHOWN_CHARS, Connection

Params = ParamSpec("Params")
MADE = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name"


def described(
    faults: Callable[Params, tuple[str, ...]],
) -> Callable[Params, tuple[str, ...]]:
    """The same check, in which what SQLite refuses to read is a fault."""

    @functools.wraps(faults)
    def checked(*args: Params.args, **named: Params.kwargs) -> tuple[str, ...]:
        try:
            return faults(*args, **named)
        except (
            sqlite3.DatabaseError,
            UnicodeDecodeError,
        ) as exc:  # the latter: of a name in SQLite's own message
            return (str(exc),)

    return checked


@described
def page_faults(conn: Connection, *, thorough: bool = False) -> tuple[str, ...]:
    """What SQLite's own check finds, a line each; `thorough` also compares indexes with their tables."""
    check = "integrity_check" if thorough else "quick_check"
    return tuple(str(row[0]) for row in conn.execute(f"PRAGMA {check}") if row[0] != "ok")


def is_json(text: str) -> bool:
    """Whether the text is JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


@described
def text_faults(conn: Connection) -> tuple[str, ...]:
    """Texts in any database that are not UTF-8, a line each."""
    conn.text_factory = _decoded
    names = conn.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    found = {
        f"{name}.{column} of a row is not UTF-8: {value[:SHOWN_CHARS]!r}"
        for (name,) in names
        for row in conn.execute(f"SELECT * FROM {name}")  # noqa: S608 - a name from the schema
        for column, value in zip(row.keys(), row, strict=True)
        if isinstance(value, Undecodable)
    }
    conn.text_factory = str
    return tuple(sorted(found))


class Undecodable(str):
    """What can be read of a text that is not UTF-8."""

    __slots__ = ()


def _decoded(stored: bytes) -> str:
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return Undecodable(stored.decode(errors="backslashreplace"))


@described
def schema_faults(conn: Connection, role: Role) -> tuple[str, ...]:
    """How tables, indexes and triggers differ from what the migrations create, a line each."""
    right = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for migration in migrations(SCHEMA_FOLDER / role)[: version_of(conn)]:
            for statement in migration.statements():
                right.execute(statement)
        wanted = {(row[0], row[1]): row[2] for row in right.execute(MADE)}
    finally:
        right.close()
    found = {(row[0], row[1]): row[2] for row in conn.execute(MADE)}
    missing = [f"the {kind} {name} is missing" for kind, name in sorted(wanted.keys() - found.keys())]
    foreign = [
        f"the {kind} {name} is not the program's" for kind, name in sorted(found.keys() - wanted.keys())
    ]
    changed = [
        f"the {key[0]} {key[1]} is not as the program makes it"
        for key in sorted(wanted.keys() & found.keys())
        if wanted[key] != found[key]
    ]
    return (*missing, *foreign, *changed)


@described
def session_faults(conn: Connection) -> tuple[str, ...]:
    """Values of a session that are not JSON, a line each."""
    found = []
    for key, value in conn.execute("SELECT key, value FROM kv ORDER BY key"):
        if not is_json(value):
            found.append(f"{key} is not JSON")
    return tuple(found)
