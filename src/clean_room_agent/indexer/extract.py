"""Extracts everything that the index stores about one file, as plain tuples that are cheap to pickle."""

import os
import traceback
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tree_sitter import Node, Query, QueryCursor

from clean_room_agent import file_contents, syntax
from clean_room_agent.db.curated.files import NOT_PARSED, NewFileRow, SkippedStamp
from clean_room_agent.db.curated.names import StoredNames
from clean_room_agent.db.curated.postings import SearchFile
from clean_room_agent.indexer.index_run import Failed
from clean_room_agent.indexer.terms import read_search_file
from clean_room_agent.indexer.workers import note_reading
from clean_room_agent.json_values import to_json
from clean_room_agent.languages.base import Language
from clean_room_agent.languages.comments import classify
from clean_room_agent.languages.interface import FileNames
from clean_room_agent.languages.nesting import Nested, innermost, nest
from clean_room_agent.languages.parsed import Comment, ParsedFile, RawImport
from clean_room_agent.languages.registry import BY_GRAMMAR, name_of
from clean_room_agent.safe_open import NOT_A_FILE, open_file

DocFacts = tuple[int, str, str, str | None]
"""place of the symbol or -1 for the module, content, format, parsed fields."""
CommentFacts = tuple[int, int, str, str, bool]
"""place of the symbol or -1, line, content, kind, whether it gives a reason."""
HEAD = 8192
"""Bytes that show most binary files to be such."""
MAX_DEPTH = 5_000
"""Nodes of the syntax tree around what is found: a walk over deeper ones would take quadratic time. Code has dozens."""
MARKS = tuple(mark for mark, _ in file_contents.BOMS)


class ExtractedFile(NamedTuple):
    """Everything that can be learned from a file without looking at any other."""

    file: NewFileRow
    symbols: list["SymbolFacts"]
    """By place."""
    docstrings: list[DocFacts]
    comments: list[CommentFacts]
    names: StoredNames | None
    """None where the file imports nothing and has no references."""
    search: SearchFile


class SymbolFacts(NamedTuple):
    """A definition as a row of `symbols`, without ids."""

    name: str
    qualified_name: str
    kind: str
    start_line: int
    end_line: int
    signature: str
    parent: int
    """Place of the symbol around it, or -1."""


def extract(root: Path, path: str, *, max_bytes: int) -> ExtractedFile | SkippedStamp | Failed:
    """Parse one file, or say why there is nothing to index.

    Source code that cannot be decoded is a failure; any other file that cannot is assumed to be binary and skipped.
    """
    grammar = syntax.grammar_of(path)
    note_reading(path)
    try:
        with open_file(root, path) as file:
            status = os.fstat(file.fileno())
            head = file.read(HEAD)
            binary = b"\0" in head and not head.startswith(MARKS)
            data = head if binary else head + file.read(max(max_bytes + 1 - len(head), 0))
    except OSError as exc:
        return _unreadable_file(path, exc)
    skipped = SkippedStamp(path, status.st_size, status.st_mtime_ns, status.st_ino, "")
    if binary or len(data) > max_bytes:
        return skipped if grammar is None else skipped._replace(reason="binary: it holds NUL bytes")
    try:
        text = file_contents.decode(data, max_bytes=max_bytes).text
    except file_contents.NotTextError as exc:
        if grammar is None:
            return skipped
        if b"\0" in data or file_contents.is_pointer(data):
            return skipped._replace(reason=str(exc))
        return Failed(path, f"cannot be decoded: {exc}")
    read = NewFileRow(
        path=path,
        language=name_of(path),
        content_hash=file_contents.content_hash(data),
        size_bytes=len(data),
        mtime_ns=status.st_mtime_ns,
        inode=status.st_ino,
        parse_error=None,
    )
    return _facts_or_text(read, text.encode(), grammar)


def _facts_or_text(file: NewFileRow, source: bytes, grammar: str | None) -> ExtractedFile:
    """What stands in a file; of one that our readers break on, the text alone, with a note."""
    try:
        return _extract_facts(file, source, grammar)
    except Exception as exc:  # noqa: BLE001 - whatever they make of one file, the index has it and all others
        return _extract_facts(file._replace(parse_error=f"{NOT_PARSED}{_bug_message(exc)}"), source, None)


def _bug_message(exc: Exception) -> str:
    """The fault of a reader, in one line."""
    frame = traceback.extract_tb(exc.__traceback__)[-1]
    return f"a bug in cra: {type(exc).__name__}: {exc} ({Path(frame.filename).name}:{frame.lineno})"


def _extract_facts(file: NewFileRow, source: bytes, grammar: str | None) -> ExtractedFile:
    """What stands in a file; without a grammar, it is text. An error that is already noted is kept."""
    parsed, nested, names, parse_error = _parse_source(source, grammar)
    comments = _comment_facts(parsed.comments, nested)
    docs = [] if grammar is None else _docstring_facts(parsed.module_doc, nested, BY_GRAMMAR[grammar])
    return ExtractedFile(
        file=file._replace(parse_error=file.parse_error or parse_error),
        symbols=[
            SymbolFacts(one.name, name, kind, one.start_line, one.end_line, one.signature, parent)
            for one, parent, name, kind in zip(*nested, strict=True)
        ],
        docstrings=docs,
        comments=comments,
        names=names,
        search=read_search_file(
            file.path,
            source,
            nested,
            docstrings=[doc[1] for doc in docs],
            comments=[comment[2] for comment in comments],
        ),
    )


def _unreadable_file(path: str, exc: OSError) -> SkippedStamp | Failed:
    if exc.errno not in NOT_A_FILE:
        return Failed(path, f"cannot be read: {exc.strerror}")
    reason = "it is a link, or a link leads to it" if syntax.grammar_of(path) else ""
    return SkippedStamp(path, 0, 0, 0, reason)


def prepare(grammars: Iterable[str]) -> None:
    """Compile the queries of these grammars; call it before forking, so that it happens once."""
    for grammar in grammars:
        _grammar_query(grammar)


@cache
def _grammar_query(grammar: str) -> Query:
    return Query(syntax.language(grammar), BY_GRAMMAR[grammar].query(grammar))


def _parse_source(
    source: bytes, grammar: str | None
) -> tuple[ParsedFile, Nested, StoredNames | None, str | None]:
    if grammar is None or len(source) > syntax.MAX_PARSED_BYTES:
        return ParsedFile(), nest(()), None, None
    try:
        root = syntax.parse(source, grammar).root_node
    except syntax.ParseGivenUp as exc:
        return ParsedFile(), nest(()), None, f"{NOT_PARSED}{exc}"
    parsed, nested, found = read_source(root, source, grammar)
    error = _first_error(root) if root.has_error else None
    return parsed, nested, StoredNames(_imports_text(parsed.imports), found.interface, found.uses), error


def read_source(root: Node, source: bytes, grammar: str) -> tuple[ParsedFile, Nested, FileNames]:
    """What the file's language reads of its tree."""
    cursor = QueryCursor(_grammar_query(grammar))
    cursor.set_max_start_depth(MAX_DEPTH)
    captures = cursor.captures(root)
    language = BY_GRAMMAR[grammar]
    parsed = language.read(root, captures, source, grammar)
    nested = nest(parsed.definitions)
    return parsed, nested, language.read_names(captures, source, nested, parsed)


def _imports_text(imports: Iterable[RawImport]) -> str:
    """The import statements as written, without duplicates."""
    written = dict.fromkeys((one.target, one.names, one.kind) for one in imports)
    return to_json(list(written))


def _first_error(root: Node) -> str:
    node = root
    while not (node.is_error or node.is_missing):
        # A node can contain an error although none of its children does.
        inner = next((child for child in node.children if child.has_error), None)
        if inner is None:
            break
        node = inner
    row, column = node.start_point
    return f"line {row + 1}, column {column + 1}"


def _docstring_facts(module_doc: str, nested: Nested, language: Language) -> list[DocFacts]:
    docs = [(-1, module_doc), *((place, one.doc) for place, one in enumerate(nested.definitions) if one.doc)]
    return [(place, doc, *language.read_documentation(doc)) for place, doc in docs if doc.strip()]


def _comment_facts(comments: list[Comment], nested: Nested) -> list[CommentFacts]:
    places = innermost((comment.start for comment in comments), nested)
    return [
        (place, comment.line, comment.text, *classify(comment.text))
        for comment, place in zip(comments, places, strict=True)
    ]
