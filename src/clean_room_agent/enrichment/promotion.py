"""Copies descriptions from the record into the index, if they still describe the file's present content."""

from collections.abc import Iterable

from msgspec import Struct, structs

from clean_room_agent.db.connection import transaction
from clean_room_agent.db.curated import metadata
from clean_room_agent.db.curated.files import FileRow, list_files
from clean_room_agent.db.curated.metadata import FileMetadataRow
from clean_room_agent.db.raw.indexing import DescriptionRow
from clean_room_agent.db.rows import Connection


class Promotion(Struct, frozen=True, kw_only=True):
    """What was copied, and what was not."""

    promoted: int
    """Files with a new or changed description."""
    unchanged: int
    """Files whose description was in the index already."""
    outdated: tuple[str, ...]
    """Files that changed since they were described, by path: the index has no description of them now."""


def promote(conn: Connection, known: Iterable[DescriptionRow]) -> tuple[Promotion, tuple[int, ...]]:
    """The index holds the newest description of each file whose content is still the described one, in one transaction.

    A file that has changed since loses what described it before. Descriptions that the record knows nothing of stay.
    Returns also the ids of the descriptions that are in the index now and not yet marked as promoted in the record.

    Args:
        conn: to curated.sqlite, for writing; the caller holds the index's lock.
        known: descriptions; of several of one content, only the newest.
    """
    newest = {(row.path, row.content_hash): row for row in known}
    described = {path for path, _ in newest}
    with transaction(conn):
        files = [file for file in list_files(conn) if file.path in described]
        held = {row.file_id: row for row in metadata.list_metadata(conn)}
        current = [
            (file, newest[file.path, file.content_hash])
            for file in files
            if (file.path, file.content_hash) in newest
        ]
        changed = [wanted for file, row in current if held.get(file.id) != (wanted := _metadata(file, row))]
        outdated = [file for file in files if (file.path, file.content_hash) not in newest]
        metadata.put_metadata(conn, changed)
        metadata.delete_metadata(conn, [file.id for file in outdated])
    promotion = Promotion(
        promoted=len(changed),
        unchanged=len(current) - len(changed),
        outdated=tuple(file.path for file in outdated),
    )
    return promotion, tuple(row.id for _, row in current if not row.promoted)


def _metadata(file: FileRow, row: DescriptionRow) -> FileMetadataRow:
    same = {
        name: value
        for name, value in structs.asdict(row).items()
        if name in FileMetadataRow.__struct_fields__
    }
    return FileMetadataRow(file_id=file.id, **same)
