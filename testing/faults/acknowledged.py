"""What was promised: after every `Record.write`, how many rows each table held; after every key of a session, which."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.rows import Connection
from clean_room_agent.db.session import States

TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"


@contextmanager
def acknowledging(acknowledge: Callable[[Mapping[str, int]], None]) -> Iterator[None]:
    """Meanwhile every `Record.write` that returns is followed by `acknowledge`, with the rows by table."""
    write = Record.write

    def observed(self: Record, event: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        def counted(conn: Connection) -> tuple[Any, dict[str, int]]:
            result = event(conn, *args, **kwargs)
            return result, count_rows(conn)

        result, rows = write(self, counted)
        acknowledge(rows)
        return result

    Record.write = observed  # type: ignore[method-assign]
    try:
        yield
    finally:
        Record.write = write  # type: ignore[method-assign]


@contextmanager
def acknowledging_states(acknowledge: Callable[[str, str], None]) -> Iterator[None]:
    """Meanwhile every key of a session that was set is followed by `acknowledge`, with the session's file and the whole key.

    Runs of `cra` never take a key back.
    """
    put = States.set_states

    def observed(self: States, values: Mapping[str, Any]) -> None:
        put(self, values)
        path = self._conn.execute("PRAGMA database_list").fetchone()[2]
        for key in values:
            acknowledge(path, self._prefix + key)

    States.set_states = observed  # type: ignore[method-assign]
    try:
        yield
    finally:
        States.set_states = put  # type: ignore[method-assign]


def count_rows(conn: Connection) -> dict[str, int]:
    """How many rows each table has."""
    names = [row[0] for row in conn.execute(TABLES)]
    return {name: conn.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}
