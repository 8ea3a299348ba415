"""Everything that can be found wrong with a record, as `cra check` finds it step by step."""

import sqlite3

from clean_room_agent.db.integrity import page_faults, schema_faults
from clean_room_agent.db.raw.integrity import chain_faults
from clean_room_agent.db.rows import Connection


def record_faults(conn: Connection) -> tuple[str, ...]:
    """What is wrong with the record, a line each; empty if it is sound."""
    try:
        return page_faults(conn) or (*schema_faults(conn, "raw"), *chain_faults(conn))
    except sqlite3.DatabaseError as exc:
        return (str(exc),)
