"""Which files are to be described, and in which order."""

from collections.abc import Collection
from dataclasses import dataclass

from clean_room_agent import syntax
from clean_room_agent.db.curated.files import FileRow
from clean_room_agent.db.raw.enrichment import DescriptionRow
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.secret_files import is_secret_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The files that are to be described, each list the most imported first, then by path."""

    described: tuple[FileRow, ...]
    """Their present content is described in the record."""
    due: tuple[FileRow, ...]


def choose(kb: KnowledgeBase, known: Collection[DescriptionRow], *, every: bool) -> Chosen:
    """The files of the languages whose symbols the index has, or with `every` all text files, but no empty ones."""
    wanted = [
        file
        for file in kb.get_files()
        if file.size_bytes
        and (every or syntax.grammar_of(file.path) is not None)
        and not is_secret_name(file.path)
    ]
    importers = {
        file.id: len({row.file.id for row in kb.get_dependencies(file.id, direction="imported_by")})
        for file in wanted
    }
    wanted.sort(key=lambda file: (syntax.grammar_of(file.path) is None, -importers[file.id], file.path))
    contents = {(row.path, row.content_hash) for row in known}
    return Chosen(
        described=tuple(file for file in wanted if (file.path, file.content_hash) in contents),
        due=tuple(file for file in wanted if (file.path, file.content_hash) not in contents),
    )
