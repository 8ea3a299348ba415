"""Checks that any of the databases is whole."""

import functools
import sqlite3
from collections.abc import Callable
from typing import ParamSpec

from clean_room_agent.db.rows import Connection

Params = ParamSpec("Params")


def described(faults: Callable[Params, tuple[str, ...]]) -> Callable[Params, tuple[str, ...]]:
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
