"""What is known about a file without a model, from the index and its own bytes: everything that a prompt may show of
it.
"""

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from clean_room_agent.db.curated.files import DependencyRow, FileRow
from clean_room_agent.file_contents import NotTextError, content_hash, decode
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.safe_open import read_bytes

COMMITS = 6
"""The newest commits whose subject lines a prompt shows."""


class Definition(Struct, frozen=True, kw_only=True):
    """A symbol of the file."""

    name: str
    """Qualified: `Class.method`."""
    kind: str
    depth: int
    """How many symbols enclose it."""
    start_line: int
    """1-based, inclusive."""
    end_line: int
    signature: str
    doc: str
    """"" where it has none."""


class FileFacts(Struct, frozen=True, kw_only=True):
    """What is known of one file."""

    file: FileRow
    lines: tuple[str, ...]
    """Without line ends; empty where the file is not text."""
    unreadable: str
    """Why it is not text; "" where it is."""
    definitions: tuple[Definition, ...]
    """By first line, the enclosing before the enclosed."""
    doc: str
    """The module's own."""
    imports: tuple[str, ...]
    """Paths, sorted."""
    imported_by: tuple[str, ...]
    commits: tuple[str, ...]
    """Subjects, newest first."""


def read_facts(kb: KnowledgeBase, root: Path, path: str) -> FileFacts | None:
    """The facts of the file at `path`; None where it is not indexed, or has changed since."""
    file = kb.get_file_by_path(path)
    data = _bytes_of(root, path)
    if file is None or data is None or content_hash(data) != file.content_hash:
        return None
    try:
        text, unreadable = decode(data).text, ""
    except NotTextError as exc:
        text, unreadable = "", str(exc)
    docs = {doc.symbol_id: doc.content.strip() for doc in reversed(kb.get_docstrings_for_file(file.id))}
    return FileFacts(
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
