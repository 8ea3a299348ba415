"""Everything that can be found wrong with a record."""

import sqlite3

from clean_room_agent.db.connection import Role
from clean_room_agent.db.integrity import described, page_faults
from clean_room_agent.db.migrations import SCHEMA_FOLDER, migrations, version_of
from clean_room_agent.db.raw.integrity import chain_faults
from clean_room_agent.db.rows import Connection

MADE = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name"


def record_faults(conn: Connection) -> tuple[str, ...]:
    """What is wrong with the record, a line each; empty if it is sound."""
    try:
        return page_faults(conn) or (*schema_faults(conn, "raw"), *chain_faults(conn))
    except sqlite3.DatabaseError as exc:
        return (str(exc),)


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
