"""A file as the index and its own bytes describe it: all that a prompt may show of it."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from clean_room_agent.db.curated.dependencies import DependencyRow
from clean_room_agent.db.curated.files import FileRow
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.safe_open import read_bytes
from clean_room_agent.text_file import NotTextError, decode

COMMITS = 6
"""Subjects of past commits that a prompt shows, the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A symbol of the file."""

    name: str
    """Qualified: `Class.method`."""
    kind: str
    depth: int
    """How many symbols stand around it."""
    start_line: int
    """1-based, inclusive."""
    end_line: int
    signature: str
    doc: str
    """"" where it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A file with what is known of it."""

    file: FileRow
    lines: tuple[str, ...]
    """Without line ends; empty where `unreadable` says why."""
    unreadable: str
    definitions: tuple[Definition, ...]
    """By first line, the enclosing before the enclosed."""
    doc: str
    """The module's own."""
    imports: tuple[str, ...]
    """Paths, sorted."""
    imported_by: tuple[str, ...]
    commits: tuple[str, ...]
    """Subjects, newest first."""


def look_at(kb: KnowledgeBase, root: Path, path: str) -> Subject | None:
    """What is known of the file of `root` at `path`; None where it is not indexed, or no longer as it was indexed."""
    file = kb.get_file_by_path(path)
    data = _bytes_of(root, path)
    if file is None or data is None or hashlib.sha256(data).hexdigest() != file.content_hash:
        return None
    try:
        text, unreadable = decode(data).text, ""
    except NotTextError as exc:
        text, unreadable = "", str(exc)
    docs = {doc.symbol_id: doc.content.strip() for doc in reversed(kb.get_docstrings_for_file(file.id))}
    return Subject(
        file=file,
        lines=tuple(text.removesuffix("\n").split("\n")) if text else (),
        unreadable=unreadable,
        definitions=tuple(
            Definition(
                name=symbol.qualified_name,
                kind=symbol.kind,
                depth=symbol.qualified_name.count("."),
                start_line=symbol.start_line,
                end_line=symbol.end_line,
                signature=symbol.signature,
                doc=docs.get(symbol.id, ""),
            )
            for symbol in kb.get_symbols_for_file(file.id)
        ),
        doc=docs.get(None, ""),
        imports=_paths(kb.get_dependencies(file.id, direction="imports")),
        imported_by=_paths(kb.get_dependencies(file.id, direction="imported_by")),
        commits=tuple(
            commit.message.strip().split("\n", 1)[0]
            for commit in kb.get_recent_commits_for_file(file.id, limit=COMMITS)
        ),
    )


def _bytes_of(root: Path, path: str) -> bytes | None:
    try:
        return read_bytes(root, path)
    except OSError:
        return None


def _paths(rows: Iterable[DependencyRow]) -> tuple[str, ...]:
    return tuple(sorted({row.file.path for row in rows}))
