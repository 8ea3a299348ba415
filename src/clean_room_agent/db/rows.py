"""Maps each table to a frozen struct: rows are stored and read typed, a column per field, with no SQL built from
values.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cached_property
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from msgspec import Struct

from clean_room_agent.db.connection import DAMAGED
from clean_room_agent.errors import RecordError
from clean_room_agent.json_values import from_json, from_plain, to_json

Connection = sqlite3.Connection
"""For the layers above, which may not import sqlite3."""
RowT = TypeVar("RowT", bound=Struct)
SqlValue = int | float | str | bytes | None
SHOWN_CHARS = 40
PLAIN = frozenset({int, float, str, bytes, type(None)})
OF_TASK = "(task_id = ? OR (task_id > ? AND task_id < ?))"
"""An SQL condition; its parameters are `task_range`. Unlike LIKE, it uses the index and has no wildcards."""


class Table(Generic[RowT]):
    """A table and the struct of its rows: every field is the column of that name.

    A field `id` is 0 until the row is stored. A field that is itself a struct is a part of the row: its own fields are
    columns. Booleans are stored as 0 and 1, enumerations as their values, and every other type that SQLite lacks as
    JSON.
    """

    def __init__(
        self,
        name: str,
        kind: type[RowT],
        *,
        renamed: Mapping[str, str] | None = None,
        same: tuple[str, ...] = (),
        query: str = "",
    ) -> None:
        """`renamed`: the columns of fields that have other names (`part.field` for a field of a part). `same`: the columns by
        which a resumed run recognises the row that it inserts again. `query`: what is read in place of the table, in
        brackets, if some columns are not of the table itself.
        """
        self.name = name
        self.kind = kind
        self._renamed = renamed or {}
        self._same = same
        self._read_from = query or name

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """In the order of the struct's fields."""
        return tuple(self._column_places)

    @cached_property
    def _part_types(self) -> Mapping[str, type[Struct]]:
        hints = get_type_hints(self.kind)
        return {
            name: hint for name, hint in hints.items() if isinstance(hint, type) and issubclass(hint, Struct)
        }

    @cached_property
    def _column_places(self) -> Mapping[str, tuple[str, str]]:
        """For each column, the place of its value in a row: (part, field); the part is "" for a field of the row
        itself.
        """
        found = {}
        for field in self.kind.__struct_fields__:
            part = self._part_types.get(field)
            names = [("", field)] if part is None else [(field, one) for one in part.__struct_fields__]
            for place in names:
                found[self._renamed.get(".".join(filter(None, place)), place[1])] = place
        return found

    @cached_property
    def _column_hints(self) -> Mapping[str, Any]:
        hints = {"": get_type_hints(self.kind)}
        hints |= {name: get_type_hints(part) for name, part in self._part_types.items()}
        return {name: hints[part][field] for name, (part, field) in self._column_places.items()}

    @cached_property
    def _decoded_types(self) -> Mapping[str, Any]:
        """The type that each column's value is decoded to; None if it is stored as it is."""
        return {name: _decoded_type(hint) for name, hint in self._column_hints.items()}

    @cached_property
    def _insert_statement(self) -> str:
        names = [name for name in self.columns if name != "id"]
        marks = ", ".join(f":{name}" for name in names)
        return f"INSERT INTO {self.name} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608

    def insert(self, conn: Connection, row: RowT) -> int:
        """Insert the row and return its id; `row.id` is ignored."""
        values = {name: value for name, value in self._stored_values(row) if name != "id"}
        return conn.execute(self._insert_statement, values).lastrowid or 0

    def insert_once(self, conn: Connection, row: RowT) -> int:
        """Insert the row, unless one that is the same exists; return the id of that or of the new one."""
        tail = " AND ".join(f"{name} IS :{name}" for name in self._same)
        values = {name: value for name, value in self._stored_values(row) if name in self._same}
        query = f"SELECT id FROM {self.name} WHERE {tail} ORDER BY id LIMIT 1"  # noqa: S608
        known = conn.execute(query, values).fetchone()
        return self.insert(conn, row) if known is None else int(known[0])

    def update(self, conn: Connection, /, row_id: int, **values: object) -> None:
        """Set the named columns of the row."""
        assignments = ", ".join(f"{name} = :{name}" for name in values)
        encoded = {name: self._encode_value(name, value) for name, value in values.items()}
        conn.execute(f"UPDATE {self.name} SET {assignments} WHERE id = :id", {**encoded, "id": row_id})  # noqa: S608

    def select(self, conn: Connection, tail: str, parameters: tuple[SqlValue, ...] = ()) -> tuple[RowT, ...]:
        """The rows that `tail` (WHERE ... ORDER BY ...) selects, in its order."""
        query = f"SELECT {', '.join(self.columns)} FROM {self._read_from} {tail}"  # noqa: S608
        return tuple(self._decode_row(row) for row in conn.execute(query, parameters))

    def first(self, conn: Connection, tail: str, parameters: tuple[SqlValue, ...] = ()) -> RowT | None:
        """The first row that `tail` selects; None if there is none."""
        return next(iter(self.select(conn, f"{tail} LIMIT 1", parameters)), None)

    def of_task(self, conn: Connection, task_id: str) -> tuple[RowT, ...]:
        """The rows of a task and its passes (or of one pass and those below it), by id."""
        return self.select(conn, f"WHERE {OF_TASK} ORDER BY id", task_range(task_id))

    def get(self, conn: Connection, row_id: int) -> RowT | None:
        """The row with this id."""
        return self.first(conn, "WHERE id = ?", (row_id,))

    def newest(self, conn: Connection, **values: SqlValue) -> RowT | None:
        """The row that was inserted last of those with these values in the columns of these names; None if there is none."""
        condition = " AND ".join(f"{name} = ?" for name in values)
        return self.first(conn, f"WHERE {condition} ORDER BY id DESC", tuple(values.values()))

    def _stored_values(self, row: RowT) -> Iterator[tuple[str, object]]:
        """Each column with the value to store."""
        for name, (part, field) in self._column_places.items():
            yield name, self._encode_value(name, getattr(getattr(row, part) if part else row, field))

    def _encode_value(self, name: str, value: object) -> object:
        if value is None or self._decoded_types[name] is None:
            return _storable_text(value) if isinstance(value, str) else value
        if isinstance(value, Enum):
            return value.value
        if isinstance(value, bool):
            return int(value)
        return to_json(value)

    def _decode_row(self, row: tuple[Any, ...]) -> RowT:
        """The row, typed. Raises RecordError if a column holds a value that this program never writes."""
        own: dict[str, Any] = {}
        parts: dict[str, dict[str, Any]] = {name: {} for name in self._part_types}
        for (column, (part, field)), value in zip(self._column_places.items(), row, strict=True):
            (parts[part] if part else own)[field] = self._decode_value(column, value)
        made = {name: kind(**parts[name]) for name, kind in self._part_types.items()}
        return self.kind(**own, **made)

    def _decode_value(self, name: str, value: Any) -> Any:
        kind = self._decoded_types[name]
        if value is None or kind is None:
            return value
        try:
            if isinstance(value, str) and value[:1] in {"[", "{"}:
                return from_json(value, kind)
            return from_plain(value, kind)
        except ValueError as exc:
            raise strange_value(f"{self.name}.{name}", value) from exc


def select_as(
    conn: Connection, kind: type[RowT], query: str, parameters: tuple[SqlValue, ...] = ()
) -> tuple[RowT, ...]:
    """The rows of the query, whose columns are the struct's fields in their order.

    Raises:
        RecordError: a column holds a value that this program never writes.
    """
    names = kind.__struct_fields__
    found = []
    for row in conn.execute(query, parameters):
        # SQLite's total() is a float, as it has no largest number.
        whole = (int(value) if isinstance(value, float) else value for value in row)
        values = dict(zip(names, whole, strict=True))
        try:
            found.append(from_plain(values, kind))
        except ValueError as exc:
            name = str(exc).rpartition("$.")[2].rstrip("`")
            raise strange_value(f"the column {name}", values.get(name, exc)) from exc
    return tuple(found)


def strange_value(place: str, value: object) -> RecordError:
    """The error for a value at `place` that was not written by this program."""
    return RecordError(
        f"{place} holds {str(value)[:SHOWN_CHARS]!r}, which no cra writes",
        hint=f"the record is damaged, or another program has changed it; {DAMAGED['raw']}",
    )


def moment(timestamp: str) -> datetime:
    """A timestamp of the record as a datetime.

    Raises:
        RecordError: it was not written by this program.
    """
    try:
        return datetime.fromisoformat(timestamp)
    except ValueError as exc:
        raise strange_value("a timestamp", timestamp) from exc


def _storable_text(text: str) -> str:
    """The text with lone surrogates (which a model's answer may contain) as escapes, since SQLite accepts only UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def _decoded_type(hint: Any) -> Any:
    parts = set(get_args(hint)) or {hint}
    if parts <= PLAIN or all(isinstance(part, str) for part in parts):  # the strings are those of a Literal
        return None
    return hint


def task_range(task_id: str) -> tuple[str, str, str]:
    """The parameters of `OF_TASK`: the id, and the bounds of all that begin with it and a colon."""
    return (task_id, f"{task_id}:", f"{task_id};")


def replace_rows(
    conn: Connection,
    table: str,
    columns: Sequence[str],
    where: str,
    parameters: tuple[int, ...],
    wanted: Iterable[tuple[Any, ...]],
) -> None:
    """The rows of the table that `where` selects are the wanted ones, each a value per column."""
    missing = dict.fromkeys(wanted)
    gone = []
    for row in conn.execute(f"SELECT {', '.join(columns)} FROM {table} WHERE {where}", parameters).fetchall():  # noqa: S608 - names of the schema
        if tuple(row) in missing:
            del missing[tuple(row)]
        else:
            gone.append(tuple(row))
    if gone:
        same = " AND ".join(f"{column} IS ?" for column in columns)
        conn.executemany(f"DELETE FROM {table} WHERE {same}", gone)  # noqa: S608
    insert_rows(conn, table, columns, missing)


def insert_rows(
    conn: Connection, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]
) -> None:
    """Insert the rows, each a value per column."""
    marks = ", ".join("?" * len(columns))
    conn.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)  # noqa: S608
