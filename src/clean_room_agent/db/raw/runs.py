"""What `cra runs` lists, and how a task is named: by the beginning of its id, or by how long ago it was."""

from dataclasses import dataclass

from clean_room_agent.artifacts.ids import parse_run
from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.db.rows import Connection, strange_value
from clean_room_agent.errors import UsageError

SHOWN_CANDIDATES = 10

# A pass's task is what stands before its first colon; passes of an orchestrated run are not listed by themselves.
LIST_RUNS = """
SELECT task_id, command, status, task_description, timestamp, completed_at FROM orchestrator_runs
UNION ALL
SELECT t.task_id, t.mode, CASE t.success WHEN 1 THEN 'complete' WHEN 0 THEN 'failed' ELSE 'running' END,
    '', t.timestamp, t.completed_at
FROM task_runs AS t
WHERE NOT EXISTS (
    SELECT 1 FROM orchestrator_runs AS o
    WHERE o.task_id = substr(t.task_id, 1, instr(t.task_id || ':', ':') - 1))
ORDER BY timestamp DESC, task_id LIMIT ?
"""
FIND_TASKS = """
SELECT task_id FROM orchestrator_runs WHERE substr(task_id, 1, length(?1)) = ?1
UNION
SELECT substr(task_id, 1, instr(task_id || ':', ':') - 1) FROM task_runs WHERE substr(task_id, 1, length(?1)) = ?1
UNION
SELECT substr(task_id, 1, instr(task_id || ':', ':') - 1) FROM retrieval_llm_calls
WHERE substr(task_id, 1, length(?1)) = ?1
ORDER BY 1
"""
COUNTED_BACK = "SELECT task_id FROM orchestrator_runs ORDER BY timestamp DESC, id DESC LIMIT 1 OFFSET ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunListing:
    """One line of `cra runs`: an orchestrated run, or a pass that stands alone (a retrieval)."""

    task_id: str
    command: str
    """solve, plan; the mode where a pass stands alone."""
    status: RunStatus
    task_description: str
    """The user's words; "" where a pass stands alone."""
    timestamp: str
    completed_at: str | None


def list_runs(conn: Connection, *, limit: int = 100) -> tuple[RunListing, ...]:
    """The newest runs, newest first.

    Raises:
        RecordError: a column holds what no row of ours does.
    """
    return tuple(
        RunListing(
            task_id=row[0],
            command=row[1],
            status=_status(row[2]),
            task_description=row[3],
            timestamp=row[4],
            completed_at=row[5],
        )
        for row in conn.execute(LIST_RUNS, (limit,))
    )


def _status(value: str) -> RunStatus:
    try:
        return RunStatus(value)
    except ValueError as exc:
        raise strange_value("orchestrator_runs.status", value) from exc


def find_task(conn: Connection, run: str) -> str:
    """The id of the one task that `run` names, as `parse_run` reads it; a whole id wins over longer ones. Only solves, plans
    and replays are named by age.

    Raises:
        UsageError: no task begins so, or several do; then the message names them. Or there are not so many.
    """
    named = parse_run(run)
    if named.age is not None:
        return _counted_back(conn, named.age)
    prefix = named.prefix
    found = [str(row[0]) for row in conn.execute(FIND_TASKS, (prefix,))]
    if not found or not prefix:
        raise UsageError(
            f"no task begins with {prefix!r}", hint="`cra runs` lists the tasks of this repository"
        )
    if len(found) == 1 or prefix in found:
        return prefix if prefix in found else found[0]
    shown = ", ".join(found[:SHOWN_CANDIDATES]) + (", ..." if len(found) > SHOWN_CANDIDATES else "")
    raise UsageError(f"{len(found)} tasks begin with {prefix!r}: {shown}", hint="give more of the id")


def _counted_back(conn: Connection, number: int) -> str:
    found = conn.execute(COUNTED_BACK, (number,)).fetchone()
    if found is None:
        (count,) = conn.execute("SELECT count(*) FROM orchestrator_runs").fetchone()
        raise UsageError(
            f"there {'is' if count == 1 else 'are'} {count or 'no'} run{'' if count == 1 else 's'} here",
            hint="`cra runs` lists the tasks of this repository",
        )
    return str(found[0])
