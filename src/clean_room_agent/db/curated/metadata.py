"""Rows that indexing cannot derive: promoted file descriptions, and deployed adapters."""

import sqlite3
from collections.abc import Iterable, Sequence

from msgspec import Struct

from clean_room_agent.db.connection import transaction
from clean_room_agent.db.curated.files import FILE_COLUMNS, FileRow, file_from
from clean_room_agent.db.rows import Table

SEARCH = f"""
SELECT {FILE_COLUMNS} FROM file_metadata m JOIN files f ON f.id = m.file_id
WHERE (:domain IS NULL OR m.domain = :domain COLLATE NOCASE)
AND (:module IS NULL OR m.module = :module COLLATE NOCASE)
AND (:concept IS NULL OR EXISTS (SELECT 1 FROM json_each(m.concepts) WHERE value = :concept COLLATE NOCASE))
ORDER BY f.path
"""  # noqa: S608 - constant columns
ADAPTER = """
SELECT id, stage_name, base_model, model_tag, version, performance_notes, deployed_at FROM adapter_metadata
WHERE stage_name = ? AND active = 1 ORDER BY deployed_at DESC, id DESC LIMIT 1
"""

ACTIVATE = "UPDATE adapter_metadata SET active = 1, deployed_at = ? WHERE stage_name = ? AND model_tag = ?"
ADD_ADAPTER = """
INSERT INTO adapter_metadata (stage_name, base_model, model_tag, version, active, performance_notes, deployed_at)
VALUES (?, ?, ?, ?, 1, ?, ?)
"""


class FileMetadataRow(Struct, frozen=True, kw_only=True):
    """A model's description of a file."""

    file_id: int
    purpose: str | None
    module: str | None
    domain: str | None
    concepts: tuple[str, ...]
    public_api_surface: tuple[str, ...]
    complexity_notes: str | None


FILE_METADATA = Table("file_metadata", FileMetadataRow)


class ActiveAdapter(Struct, frozen=True):
    """The adapter that answers a prompt."""

    id: int
    stage_name: str
    base_model: str
    model_tag: str
    version: str
    performance_notes: str | None
    deployed_at: str


def search_by_metadata(
    conn: sqlite3.Connection, *, domain: str | None, module: str | None, concept: str | None
) -> tuple[FileRow, ...]:
    """The described files that match all given values (ASCII letters in any case), by path."""
    arguments = {"domain": domain, "module": module, "concept": concept}
    return tuple(file_from(row) for row in conn.execute(SEARCH, arguments))


def get_metadata(conn: sqlite3.Connection, file_id: int) -> FileMetadataRow | None:
    """The file's description; None if none was promoted."""
    return FILE_METADATA.first(conn, "WHERE file_id = ?", (file_id,))


def list_metadata(conn: sqlite3.Connection) -> tuple[FileMetadataRow, ...]:
    """All descriptions, by file id."""
    return FILE_METADATA.select(conn, "ORDER BY file_id")


def put_metadata(conn: sqlite3.Connection, rows: Sequence[FileMetadataRow]) -> None:
    """Store the descriptions, replacing earlier ones of the same files."""
    delete_metadata(conn, (row.file_id for row in rows))
    for row in rows:
        FILE_METADATA.insert(conn, row)


def delete_metadata(conn: sqlite3.Connection, file_ids: Iterable[int]) -> None:
    """Delete the descriptions of these files."""
    conn.executemany("DELETE FROM file_metadata WHERE file_id = ?", ((file_id,) for file_id in file_ids))


def has_metadata(conn: sqlite3.Connection) -> bool:
    """Whether any file is described."""
    return conn.execute("SELECT 1 FROM file_metadata LIMIT 1").fetchone() is not None


def get_active_adapter(conn: sqlite3.Connection, stage_name: str) -> ActiveAdapter | None:
    """The adapter last deployed for the prompt, if it is active."""
    row = conn.execute(ADAPTER, (stage_name,)).fetchone()
    return None if row is None else ActiveAdapter(*row)


def set_active_adapters(conn: sqlite3.Connection, wanted: Iterable[ActiveAdapter]) -> None:
    """Make these adapters active and no others; earlier ones stay as inactive rows."""
    with transaction(conn):
        active = {
            (row[0], row[1])
            for row in conn.execute("SELECT stage_name, model_tag FROM adapter_metadata WHERE active = 1")
        }
        rows = {(row.stage_name, row.model_tag): row for row in wanted}
        for stage, tag in sorted(active - rows.keys()):
            conn.execute(
                "UPDATE adapter_metadata SET active = 0 WHERE stage_name = ? AND model_tag = ?", (stage, tag)
            )
        for stage, tag in sorted(rows.keys() - active):
            row = rows[stage, tag]
            if conn.execute(ACTIVATE, (row.deployed_at, stage, tag)).rowcount == 0:
                values = (stage, row.base_model, tag, row.version, row.performance_notes, row.deployed_at)
                conn.execute(ADD_ADAPTER, values)
