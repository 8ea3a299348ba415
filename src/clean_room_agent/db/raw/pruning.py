"""Deletes whole runs from the record in one transaction, and measures how many bytes each takes."""

import sqlite3
from collections.abc import Collection, Mapping
from pathlib import Path

from clean_room_agent.db.connection import BROKEN, code_of, connect_bare, fault_hint
from clean_room_agent.db.rows import OF_TASK, Connection, task_range
from clean_room_agent.errors import RecordError
from clean_room_agent.workspace import LOCK_TIMEOUT, Workspace, hold

MEASUREMENTS = "measurements"
"""The task of calls that outlive their run, because a model's bias, a server's proof or a calibration is based on them.
"""

OF_CALLS = f"call_id IN (SELECT id FROM retrieval_llm_calls WHERE {OF_TASK})"  # noqa: S608 - constant conditions
OF_PASSES = f"task_run_id IN (SELECT id FROM task_runs WHERE {OF_TASK})"  # noqa: S608
ROWS: Mapping[str, str] = {
    "call_readings": OF_CALLS,
    "run_attempts": OF_PASSES,
    "orchestrator_passes": OF_PASSES,
    "retrieval_llm_calls": OF_TASK,
    "retrieval_decisions": OF_TASK,
    "plan_decisions": OF_TASK,
    "validation_results": OF_TASK,
    "refinements": OF_TASK,
    "recovery_decisions": OF_TASK,
    "task_gauges": OF_TASK,
    "session_archives": OF_TASK,
    "events": OF_TASK,
    "time_spans": OF_TASK,
    "task_runs": OF_TASK,
    "orchestrator_runs": OF_TASK,
}
"""Every table that holds rows of a run, with the condition on them; tables that refer to others come first."""
KEEP_MEASURED = f"""
UPDATE retrieval_llm_calls SET task_id = '{MEASUREMENTS}' WHERE {OF_TASK} AND id IN (
    SELECT call_id FROM answer_biases UNION SELECT call_id FROM window_proofs
    UNION SELECT newest_call_id FROM token_calibrations)
"""  # noqa: S608
# A calibration names the newest call it has seen; an older call does as well, and keeps nothing of this run.
OLDER_CALL = f"""
UPDATE token_calibrations SET newest_call_id = coalesce(
    (SELECT max(c.id) FROM retrieval_llm_calls AS c WHERE c.id <= newest_call_id AND NOT {OF_TASK}), newest_call_id)
WHERE newest_call_id IN (SELECT id FROM retrieval_llm_calls WHERE {OF_TASK})
"""  # noqa: S608
CHANGED = (*ROWS, "token_calibrations")
TRIGGERS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ? ORDER BY name"


def delete_tasks(conn: Connection, task_ids: Collection[str]) -> None:
    """Delete everything about these tasks, except the few calls that a calibration still refers to.

    An event for `Record.write`. The triggers that forbid deleting rows are dropped within its transaction only.
    """
    conn.execute("PRAGMA defer_foreign_keys = ON")
    triggers = [tuple(row) for table in CHANGED for row in conn.execute(TRIGGERS, (table,))]
    for name, _ in triggers:
        conn.execute(f"DROP TRIGGER {name}")
    for task_id in sorted(task_ids):
        of_task = task_range(task_id)
        conn.execute(OLDER_CALL, of_task * 2)
        conn.execute(KEEP_MEASURED, of_task)
        for table, condition in ROWS.items():
            conn.execute(f"DELETE FROM {table} WHERE {condition}", of_task)  # noqa: S608 - names from above
    for _, sql in triggers:
        conn.execute(sql)


def run_bytes(conn: Connection, workspace: Workspace, task_id: str) -> int:
    """Bytes of the run in the record, without SQLite's overhead, and in its other files."""
    recorded = sum(_bytes_in(conn, table, condition, task_id) for table, condition in ROWS.items())
    return recorded + sum(map(file_bytes, (workspace.session(task_id), workspace.run_copy(task_id))))


def _bytes_in(conn: Connection, table: str, condition: str, task_id: str) -> int:
    columns = [row[1] for row in conn.execute(f"PRAGMA table_info({table})")]
    size = " + ".join(f"coalesce(length(CAST({name} AS BLOB)), 0)" for name in columns)
    query = f"SELECT coalesce(sum({size}), 0) FROM {table} WHERE {condition}"  # noqa: S608 - the schema's own names
    return int(conn.execute(query, task_range(task_id)).fetchone()[0])


def compact_record(workspace: Workspace) -> bool:
    """Shrink the record's file to what it holds; returns False, and leaves it, if another process has it open.

    Raises:
        RecordError: the disk has too little free space to rewrite it; it is unchanged.
    """
    with hold(workspace.raw_lock, timeout=LOCK_TIMEOUT, what="the record"):
        conn = connect_bare(workspace.raw)
        try:
            # In exclusive mode SQLite lets nobody else open the file, and is refused where somebody has. A process that
            # is killed meanwhile leaves a journal that the next one to open the file takes no notice of.
            conn.execute("PRAGMA busy_timeout = 0")
            conn.execute("PRAGMA locking_mode = EXCLUSIVE")
            conn.execute("BEGIN EXCLUSIVE")
            conn.execute("COMMIT")
            conn.execute("VACUUM")
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError as exc:
            if code_of(exc) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                return False
            if code_of(exc) not in BROKEN:
                raise
            raise RecordError(
                f"cannot compact {workspace.raw}: {exc}", hint=fault_hint(exc, workspace.raw)
            ) from exc
        finally:
            conn.close()
    return True


def file_bytes(database: Path) -> int:
    """Bytes of a database's file and its journal; 0 if it does not exist."""
    names = (database.name, f"{database.name}-wal")
    return sum(path.stat().st_size for name in names if (path := database.with_name(name)).exists())
