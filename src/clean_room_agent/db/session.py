"""The working memory of one task: keys and JSON values in a separate file, which is archived in the record at the
task's end.
"""

import itertools
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeAlias

from clean_room_agent.artifacts.names import task_of
from clean_room_agent.db.connection import (
    BROKEN,
    OpenFiles,
    code_of,
    connect_file,
    connect_memory,
    database_path,
    fault_hint,
    file_of,
    remove_database,
)
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import ArchiveRow, append_archive, get_archive
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import RecordError
from clean_room_agent.workspace import Workspace

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"

PUT = """
INSERT INTO kv (key, value, updated_at) VALUES {rows}
ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
"""
GET = "SELECT value FROM kv WHERE key = ?"
DELETE = "DELETE FROM kv WHERE key = ?"
LIST = "SELECT key FROM kv WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key"
ALL = "SELECT key, value FROM kv ORDER BY key"


class States:
    """The keys below one prefix. Each change is committed when its call returns, and survives the process."""

    def __init__(
        self,
        conn: Connection,
        mutex: threading.Lock,
        clock: Callable[[], str],
        prefix: str,
        files: OpenFiles | None,
    ) -> None:
        self._conn = conn
        self._files = files
        self._mutex = mutex
        self._clock = clock
        self._prefix = prefix

    def set_state(self, key: str, value: JsonValue) -> None:
        """Set the value of the key."""
        self.set_states({key: value})

    def set_states(self, values: Mapping[str, JsonValue]) -> None:
        """Set the values of all these keys at once: all or, if the process dies meanwhile, none."""
        now = self._clock()
        rows = [(self._prefix + key, json.dumps(value, sort_keys=True), now) for key, value in values.items()]
        if rows:
            statement = PUT.format(rows=", ".join(["(?, ?, ?)"] * len(rows)))
            self._execute(statement, tuple(itertools.chain.from_iterable(rows)))

    def get_state(self, key: str) -> JsonValue:
        """The key's value; None if it has none."""
        rows = self._execute(GET, (self._prefix + key,))
        value: JsonValue = json.loads(rows[0][0]) if rows else None
        return value

    def delete_state(self, key: str) -> None:
        """Delete the key, if it exists."""
        self._execute(DELETE, (self._prefix + key,))

    def list_keys(self, prefix: str = "") -> tuple[str, ...]:
        """The keys that begin with `prefix`, sorted, in the form that `get_state` takes."""
        rows = self._execute(LIST, (self._prefix + prefix,))
        return tuple(row[0][len(self._prefix) :] for row in rows)

    def _execute(self, statement: str, parameters: tuple[str, ...]) -> list[tuple[str, ...]]:
        with self._mutex:
            if self._files is not None:
                self._files.require()
            try:
                return self._conn.execute(statement, parameters).fetchall()
            except sqlite3.Error as exc:
                hint = fault_hint(exc, file_of(self._conn)) if code_of(exc) in BROKEN else ""
                raise RecordError(f"the session cannot be used: {exc}", hint=hint) from exc


class Session(States):
    """A task's session, open. Usable by any number of threads."""

    def __init__(
        self,
        conn: Connection,
        *,
        path: Path,
        task_id: str,
        clock: Callable[[], str],
        files: OpenFiles | None = None,
    ) -> None:
        super().__init__(conn, threading.Lock(), clock, "", files)
        self._path = path
        self.task_id = task_id

    @classmethod
    def open(cls, repo_path: Path, task_id: str, *, clock: Callable[[], str]) -> Self:
        """Open the session of the task (or of the task that the pass belongs to), and create it if it is missing.

        Raises:
            SchemaError: the file is newer than the program, or not ours.
            RecordError: it cannot be opened.
        """
        task = task_of(task_id)
        path = database_path("session", repo_path, task)
        Workspace(repo=repo_path).create()
        conn = connect_file("session", path, any_thread=True)
        return cls(conn, path=path, task_id=task, clock=clock, files=OpenFiles(path))

    @classmethod
    def in_memory(cls, task_id: str, *, clock: Callable[[], str]) -> Self:
        """A temporary session in memory, which is gone once closed."""
        return cls(connect_memory("session"), path=Path(), task_id=task_of(task_id), clock=clock)

    def for_pass(self, pass_id: str) -> States:
        """The keys of one pass, which have its id as their prefix; those of the task itself have none."""
        return States(self._conn, self._mutex, self._clock, self.key_of(pass_id, ""), self._files)

    def key_of(self, pass_id: str, key: str) -> str:
        """What the session calls a pass's `key`."""
        return key if pass_id == self.task_id else f"{pass_id}/{key}"

    def archive(self, record: Record) -> int:
        """Move the session into the record, close it and delete its file; return the archive's id.

        Raises:
            RecordError: somebody else has it open, or the record refused it; the file is still there.
        """
        # Leaving WAL moves the whole journal into the file, and fails while another connection is open.
        self._execute("PRAGMA journal_mode = DELETE", ())
        self.close()
        row = ArchiveRow(
            task_id=self.task_id, session_blob=self._path.read_bytes(), archived_at=self._clock()
        )
        archive_id = record.write(append_archive, row)
        remove_database(self._path)
        return archive_id

    def close(self) -> None:
        """Close the file, which is kept; may be called more than once."""
        with self._mutex:
            self._conn.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def archived_states(blob: bytes) -> Mapping[str, JsonValue]:
    """Every key and value of an archived session, by key.

    Raises:
        RecordError: the bytes are not a session.
    """
    conn = sqlite3.connect(":memory:")
    try:
        conn.deserialize(blob)
        return {key: json.loads(value) for key, value in conn.execute(ALL)}
    except sqlite3.Error as exc:
        raise RecordError(f"the archived session cannot be read: {exc}") from exc
    finally:
        conn.close()


def restore_session(repo_path: Path, record: Record, task_id: str) -> None:
    """The session's file is there: as it is, or from the record where it was archived; where neither is, it stays away."""
    path = database_path("session", repo_path, task_of(task_id))
    if path.exists():
        return
    row = record.write(get_archive, task_of(task_id))
    if row is not None:
        fresh = path.with_name(f"{path.name}.part")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:  # noqa: PTH123
            file.write(row.session_blob)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)


def has_session(repo_path: Path, task_id: str) -> bool:
    """Whether the task's session is still there: it can be resumed, or is running."""
    return database_path("session", repo_path, task_id).exists()
