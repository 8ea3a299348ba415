"""Writes a single event to the record, for commands that write no other: no thread, no queue, few imports."""

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from clean_room_agent.db.connection import connect_file, fault_hint, transaction
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import RecordError
from clean_room_agent.workspace import Workspace, hold

ResultT = TypeVar("ResultT")
P = ParamSpec("P")


def write_event(
    repo_path: Path, event: Callable[Concatenate[Connection, P], ResultT], *args: P.args, **kwargs: P.kwargs
) -> ResultT:
    """Return the event's result, once it is committed and synced in the repository's record.

    Raises:
        SchemaError: the record is newer than the program, or not ours.
        RecordError: it cannot be opened or written.
    """
    workspace = Workspace(repo=repo_path)
    workspace.create()
    with (
        contextlib.closing(connect_file("raw", workspace.raw)) as conn,
        hold(workspace.raw_lock, what="the record"),
    ):
        try:
            with transaction(conn):
                return event(conn, *args, **kwargs)
        except sqlite3.Error as exc:
            hint = fault_hint(exc, workspace.raw)
            raise RecordError(f"the record cannot be written: {exc}", hint=hint) from exc
