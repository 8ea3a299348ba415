"""Writes extracted files to the database: many new ones at once, or one in place of its old rows."""

from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from clean_room_agent.db.curated import files, metadata, names, postings, symbols
from clean_room_agent.db.curated.names import StoredNames
from clean_room_agent.db.curated.postings import SearchFile
from clean_room_agent.db.rows import Connection
from clean_room_agent.indexer.extract import ExtractedFile
from clean_room_agent.languages.registry import names_beside

NumberedFacts = tuple[int, ExtractedFile]
"""File id and facts."""


def insert_files(conn: Connection, repo_id: int, bucket: int, found: Sequence[NumberedFacts]) -> None:
    """Insert new files of one bucket; ids must ascend."""
    ids = {
        file_id: range(
            symbols.first_symbol_id(file_id), symbols.first_symbol_id(file_id) + len(facts.symbols)
        )
        for file_id, facts in found
    }
    files.insert_files(conn, repo_id, [(file_id, facts.file) for file_id, facts in found])
    symbols.insert_symbols(
        conn, [row for file_id, facts in found for row in _symbol_rows(file_id, facts, ids[file_id])]
    )
    symbols.insert_docstrings(
        conn, [row for file_id, facts in found for row in _docstring_rows(file_id, facts, ids[file_id])]
    )
    symbols.insert_comments(
        conn, [row for file_id, facts in found for row in _comment_rows(file_id, facts, ids[file_id])]
    )
    names.insert_names(conn, [(file_id, facts.names) for file_id, facts in found if facts.names is not None])
    postings.insert_bucket(conn, bucket, [(file_id, facts.search) for file_id, facts in found])


class Changes(Struct, kw_only=True):
    """What a `FileWriter` has changed so far."""

    search: dict[int, SearchFile | None] = field(default_factory=dict)
    """By id of the files written, or removed (None)."""
    names: dict[int, tuple[StoredNames | None, StoredNames | None]] = field(default_factory=dict)
    """Before and after, by id of the files written or removed."""
    callables: dict[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)
    """Names of functions, methods and classes, and the languages they count in, that other symbols have now than before;
    and how many more have each."""
    added: dict[str, int] = field(default_factory=dict)
    """New files' ids by path."""
    removed: dict[str, int] = field(default_factory=dict)
    """Removed files' ids by path."""
    written: dict[str, int] = field(default_factory=dict)
    """Ids of new files and of those with other content, by path."""


class FileWriter:
    """Writes files into an open transaction."""

    def __init__(self, conn: Connection, repo_id: int) -> None:
        self._conn = conn
        self._repo_id = repo_id
        self._new: dict[str, int] = {}
        self.ids = files.list_ids(conn)
        """path -> id of all files in the database."""
        self.changes = Changes()

    def expect(self, paths: Iterable[str]) -> None:
        """Announce files that may be written, in any order; new ones get ids in the order given here."""
        first = files.next_file_id(self._conn)
        self._new = {path: first + number for number, path in enumerate(paths)}

    def write(self, facts: ExtractedFile) -> None:
        """Replace everything stored about the file.

        A symbol keeps its id as long as its file has one with the same qualified name (the nth of several stays the nth),
        so that references to it remain valid. Descriptions that a model wrote of the old content are deleted.
        """
        path = facts.file.path
        file_id = self.ids.get(path)
        before: StoredNames | None = None
        stored: list[symbols.SymbolTuple] = []
        if file_id is None:
            file_id = self.ids[path] = self.changes.added[path] = self._new[path]
            files.insert_files(self._conn, self._repo_id, [(file_id, facts.file)])
        else:
            before = names.get_names(self._conn, file_id)
            stored = symbols.list_rows(self._conn, file_id)
            files.update_file(self._conn, file_id, facts.file)
            symbols.delete_prose(self._conn, file_id)
            metadata.delete_metadata(self._conn, [file_id])
        ids = _symbol_ids(file_id, facts, stored)
        rows = _symbol_rows(file_id, facts, ids)
        symbols.replace_symbols(self._conn, stored, rows)
        self._compare_callables(path, stored, rows)
        symbols.insert_docstrings(self._conn, _docstring_rows(file_id, facts, ids))
        symbols.insert_comments(self._conn, _comment_rows(file_id, facts, ids))
        if facts.names is None:
            names.delete_names(self._conn, file_id)
        else:
            names.insert_names(self._conn, [(file_id, facts.names)])
        self.changes.names[file_id] = (before, facts.names)
        self.changes.written[path] = file_id
        self.changes.search[file_id] = facts.search

    def remove(self, paths: Iterable[str]) -> None:
        """Delete the files and everything known about them."""
        for path in sorted(path for path in paths if path in self.ids):
            file_id = self.changes.removed[path] = self.ids.pop(path)
            self._compare_callables(path, symbols.list_rows(self._conn, file_id), ())
            self.changes.names[file_id] = (names.get_names(self._conn, file_id), None)
            self.changes.search[file_id] = None
            symbols.delete_symbols(self._conn, file_id)

    def _compare_callables(
        self, path: str, stored: Iterable[symbols.SymbolTuple], rows: Iterable[symbols.SymbolTuple]
    ) -> None:
        counts = self.changes.callables
        languages = names_beside(path)
        before, after = symbols.callables_in(stored), symbols.callables_in(rows)
        for name in before.keys() | after.keys():
            old, new = before.get(name, ()), after.get(name, ())
            if old != new:
                key = name, languages
                counts[key] = counts.get(key, 0) + len(new) - len(old)


def _symbol_ids(file_id: int, facts: ExtractedFile, stored: Iterable[symbols.SymbolTuple]) -> list[int]:
    """Ids by place: those that the same names had before, and new ones for the rest."""
    known: dict[str, list[int]] = {}
    used: set[int] = set()
    for row in stored:
        known.setdefault(row[4], []).append(row[0])
        used.add(row[0])
    every = range(symbols.first_symbol_id(file_id), symbols.first_symbol_id(file_id + 1))
    unused = (number for number in every if number not in used)
    for ids in known.values():
        ids.reverse()
    return [
        known[one.qualified_name].pop() if known.get(one.qualified_name) else next(unused)
        for one in facts.symbols
    ]


def _symbol_rows(file_id: int, facts: ExtractedFile, ids: Sequence[int]) -> list[symbols.SymbolTuple]:
    return [
        (ids[place], file_id, place, *one[:6], None if one.parent < 0 else ids[one.parent])
        for place, one in enumerate(facts.symbols)
    ]


def _docstring_rows(file_id: int, facts: ExtractedFile, ids: Sequence[int]) -> list[symbols.DocstringTuple]:
    first = symbols.first_symbol_id(file_id)
    return [
        (first + number, None if place < 0 else ids[place], file_id, content, kind, fields)
        for number, (place, content, kind, fields) in enumerate(facts.docstrings)
    ]


def _comment_rows(file_id: int, facts: ExtractedFile, ids: Sequence[int]) -> list[symbols.CommentTuple]:
    first = symbols.first_symbol_id(file_id)
    return [
        (first + number, file_id, None if place < 0 else ids[place], line, content, kind, int(reason))
        for number, (place, line, content, kind, reason) in enumerate(facts.comments)
    ]
