"""Facts of files become rows; a file's rows are replaced together."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from clean_room_agent.db.curated import dependencies, files, prose, state, symbols
from clean_room_agent.db.curated.files import NewFile
from clean_room_agent.db.rows import Connection
from clean_room_agent.indexer.extract import FileFacts, TermFacts
from clean_room_agent.indexer.languages.parsed import RawImport
from clean_room_agent.indexer.resolve import resolve

IMPORTS_PREFIX = "imports:"
"""Under it and the path: the file's imports as they are written, so that they can be resolved again unread."""


@dataclass(slots=True, kw_only=True)
class Changes:
    """What writing has changed so far; filled by one `FileWriter`."""

    terms: dict[int, TermFacts] = field(default_factory=dict)
    """By id of the files written."""
    added: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    exports: bool = False
    """Whether a package changed what it takes from where: others import through it."""


class FileWriter:
    """Writes into an open transaction; ids go on from those in the database, in the order of writing."""

    def __init__(self, conn: Connection, repo_id: int) -> None:
        self._conn = conn
        self._repo_id = repo_id
        self._next_file = files.next_file_id(conn)
        self._next_symbol = symbols.next_symbol_id(conn)
        self.ids = {stamp.path: stamp.id for stamp in files.list_stamps(conn)}
        """path -> id of all files in the database."""
        self.changes = Changes()

    def write(self, facts: FileFacts) -> None:
        """The file and all that it says stand in the database; what it said before does not."""
        file = NewFile(
            path=facts.path,
            language=facts.language,
            content_hash=facts.content_hash,
            size_bytes=facts.size_bytes,
            mtime_ns=facts.mtime_ns,
            inode=facts.inode,
            parse_error=facts.parse_error,
        )
        file_id = self.ids.get(facts.path)
        if file_id is None:
            file_id = self._next_file
            self._next_file += 1
            files.insert_file(self._conn, self._repo_id, file_id, file)
            self.ids[facts.path] = file_id
            self.changes.added.add(facts.path)
        else:
            files.update_file(self._conn, file_id, file)
            prose.delete_prose(self._conn, file_id)
            symbols.delete_symbols(self._conn, file_id)
        self._write_symbols(file_id, facts)
        self._write_imports(facts)
        self.changes.written.add(facts.path)
        self.changes.terms[file_id] = facts.terms

    def remove(self, paths: Iterable[str]) -> None:
        """The files are gone, with all that was known of them."""
        gone = sorted(path for path in paths if path in self.ids)
        files.delete_files(self._conn, (self.ids.pop(path) for path in gone))
        for path in gone:
            state.delete_state(self._conn, IMPORTS_PREFIX + path)
        self.changes.removed.update(gone)

    def _write_symbols(self, file_id: int, facts: FileFacts) -> None:
        first = self._next_symbol
        self._next_symbol += len(facts.symbols)
        symbols.insert_symbols(
            self._conn,
            (
                (first + place, file_id, *symbol[:6], None if symbol[6] < 0 else first + symbol[6])
                for place, symbol in enumerate(facts.symbols)
            ),
        )
        prose.insert_docstrings(
            self._conn,
            (
                (None if place < 0 else first + place, file_id, content, kind, fields)
                for place, content, kind, fields in facts.docstrings
            ),
        )
        prose.insert_comments(
            self._conn,
            (
                (file_id, None if place < 0 else first + place, line, content, kind, int(reason))
                for place, line, content, kind, reason in facts.comments
            ),
        )

    def _write_imports(self, facts: FileFacts) -> None:
        key = IMPORTS_PREFIX + facts.path
        before = state.get_state(self._conn, key)
        value = (
            json.dumps([[raw.target, raw.names, raw.kind] for raw in facts.imports])
            if facts.imports
            else None
        )
        if value == before:
            return
        if value is None:
            state.delete_state(self._conn, key)
        else:
            state.put_state(self._conn, key, value)
        self.changes.exports |= "__init__.py" in facts.path


def write_dependencies(conn: Connection, ids: Mapping[str, int], changes: Changes) -> None:
    """The edges are those that all files together give.

    All are resolved again where a file came or went, or a package exports otherwise; else those of what was written.
    """
    if not (changes.written or changes.removed):
        return
    everything = bool(changes.added or changes.removed or changes.exports)
    imports = _imports_of(conn, everything=everything)
    sources: Collection[str] = ids if everything else changes.written
    edges = resolve(sources, ids, imports)
    if everything:
        dependencies.delete_all(conn)
    else:
        dependencies.delete_imports(conn, (ids[path] for path in sorted(changes.written)))
    dependencies.insert_dependencies(
        conn, ((ids[source], ids[target], kind) for source, target, kind in edges)
    )


def _imports_of(conn: Connection, *, everything: bool) -> Callable[[str], Sequence[RawImport]]:
    known: dict[str, tuple[RawImport, ...]] = {}
    if everything:
        for key, value in state.list_state(conn, IMPORTS_PREFIX):
            known[key.removeprefix(IMPORTS_PREFIX)] = _decode(value)

    def imports(path: str) -> Sequence[RawImport]:
        if path not in known:
            value = None if everything else state.get_state(conn, IMPORTS_PREFIX + path)
            known[path] = _decode(value) if value else ()
        return known[path]

    return imports


def _decode(value: str) -> tuple[RawImport, ...]:
    return tuple(
        RawImport(target=target, names=tuple(names), kind=kind) for target, names, kind in json.loads(value)
    )
