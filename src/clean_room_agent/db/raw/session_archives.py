"""Sessions of tasks that have ended, whole."""

from dataclasses import dataclass

from clean_room_agent.db.rows import Connection, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveRow:
    """One session's file."""

    id: int = 0
    task_id: str
    session_blob: bytes
    archived_at: str


ARCHIVES = Table("session_archives", ArchiveRow)


def append_archive(conn: Connection, row: ArchiveRow) -> int:
    """The session is stored; its id."""
    return ARCHIVES.insert(conn, row)


def get_archive(conn: Connection, task_id: str) -> ArchiveRow | None:
    """The newest archive of exactly this task."""
    return ARCHIVES.first(conn, "WHERE task_id = ? ORDER BY id DESC", (task_id,))
