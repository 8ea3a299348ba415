"""Runs to offer for shell completion: read quickly, and from an index."""

from clean_room_agent.db.rows import Connection

RUNS = """
SELECT task_id, command || ', ' || replace(status, '_', ' ') || ': ' || substr(task_description, 1, 400)
FROM orchestrator_runs WHERE substr(task_id, 1, length(?1)) = ?1 ORDER BY timestamp DESC, id DESC LIMIT ?2
"""


def find_runs(conn: Connection, prefix: str, *, limit: int) -> tuple[tuple[str, str], ...]:
    """The newest runs whose id begins with `prefix`, with their tasks."""
    return tuple((row[0], row[1]) for row in conn.execute(RUNS, (prefix, limit)))
