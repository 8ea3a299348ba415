"""Whether the values of an index are ones that this program stores; asked when a command has stumbled over one."""

from collections.abc import Iterator

from clean_room_agent.db.integrity import described
from clean_room_agent.db.rows import Connection
from clean_room_agent.indexer.history.build import HEAD_KEY
from clean_room_agent.indexer.index_run import CONFIG_KEY, MAX_BYTES_KEY, SCANNED_KEY

JSON_COLUMNS = (
    *(
        ("file_names", "imports", "array"),
        ("file_names", "interface", "array"),
        ("file_names", "uses", "array"),
    ),
    *(("file_metadata", "concepts", "array"), ("file_metadata", "public_api_surface", "array")),
    *(("docstrings", "parsed_fields", "object"), ("lookups", "names", "array")),
    *(("commit_terms", "terms", "object"), ("import_targets", "targets", "object")),
)
"""Table, column, and what its JSON is; a NULL is left to the schema."""
STATE = (
    *(
        (MAX_BYTES_KEY, "value = '' OR value GLOB '*[^0-9]*'"),
        (SCANNED_KEY, "value = '' OR value GLOB '*[^0-9]*'"),
    ),
    *((HEAD_KEY, "NOT json_valid(value)"), (CONFIG_KEY, "NOT json_valid(value)")),
)
"""Keys of `index_state`, and what their values never are."""


@described
def index_faults(conn: Connection) -> tuple[str, ...]:
    """Columns of an index with a value that this program does not store, a line each; pages and texts must be sound."""
    return tuple(_faults(conn))


def _faults(conn: Connection) -> Iterator[str]:
    if conn.execute("SELECT 1 FROM commits WHERE julianday(timestamp) IS NULL").fetchone():
        yield "commits.timestamp of a row is no time"
    for table, column, kind in JSON_COLUMNS:
        # CASE, because json_type is an error for what is no JSON.
        wrong = f"CASE WHEN json_valid({column}) THEN json_type({column}) ELSE '' END <> ?"
        query = f"SELECT 1 FROM {table} WHERE {column} IS NOT NULL AND {wrong}"  # noqa: S608 - names from above
        if conn.execute(query, (kind,)).fetchone():
            yield f"{table}.{column} of a row is no JSON {kind}"
    for key, wrong in STATE:
        if conn.execute(f"SELECT 1 FROM index_state WHERE key = ? AND ({wrong})", (key,)).fetchone():  # noqa: S608
            yield f"index_state.value of {key} is not one that is stored"
