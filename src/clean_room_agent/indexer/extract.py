"""One file's bytes as everything the database holds of it, in plain tuples that cross a process boundary cheaply."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tree_sitter import Node, Query, QueryCursor

from clean_room_agent import syntax, textfile
from clean_room_agent.indexer.docstrings import read_docstring
from clean_room_agent.indexer.languages.comments import classify
from clean_room_agent.indexer.languages.parsed import Comment, Definition, Parsed, RawImport
from clean_room_agent.indexer.languages.registry import READERS, language_of
from clean_room_agent.indexer.terms import count_terms

SymbolFacts = tuple[str, str, str, int, int, str, int]
"""name, qualified_name, kind, start_line, end_line, signature, position of the parent in the file's list or -1."""
DocFacts = tuple[int, str, str, str | None]
"""position of the symbol or -1 for the module, content, format, parsed fields."""
CommentFacts = tuple[int, int, str, str, bool]
"""position of the symbol or -1, line, content, kind, whether it gives a reason."""
TermFacts = dict[str, tuple[int, int, int, int, int]]
"""term -> how often in path, symbols, docstrings, comments, body."""
HEAD = 8192
"""Bytes that show most binary files to be such; they are met anew in each run, as the index does not know them."""
MARKS = tuple(mark for mark, _ in textfile.BOMS)
HOLDERS = frozenset({"class", "interface", "variable"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """All that a file says of itself."""

    path: str
    language: str
    content_hash: str
    size_bytes: int
    mtime_ns: int
    inode: int
    parse_error: str | None
    symbols: tuple[SymbolFacts, ...]
    docstrings: tuple[DocFacts, ...]
    comments: tuple[CommentFacts, ...]
    imports: tuple[RawImport, ...]
    terms: TermFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A file that has no place in the index, as it is no text."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A file that should be in the index and cannot be read."""

    path: str
    message: str


def extract(root: Path, path: str, *, max_bytes: int) -> FileFacts | Skipped | Failed:
    """What the file says, or why it says nothing.

    Source code that cannot be decoded is a failure; of other files, the same only means that they are no text.
    """
    try:
        with (root / path).open("rb") as file:
            status = os.fstat(file.fileno())
            head = file.read(HEAD)
            if b"\0" in head and not head.startswith(MARKS):
                return Skipped(path=path)
            data = head + file.read(max(max_bytes + 1 - len(head), 0))
    except OSError as exc:
        return Failed(path=path, message=f"cannot be read: {exc.strerror}")
    if len(data) > max_bytes:
        return Skipped(path=path)
    grammar = syntax.grammar_of(path)
    try:
        text = textfile.decode(data, max_bytes=max_bytes).text
    except textfile.NotTextError as exc:
        if grammar is None or b"\0" in data:
            return Skipped(path=path)
        return Failed(path=path, message=f"cannot be decoded: {exc}")
    parsed, parse_error = _parse(text, grammar)
    nested, parents, names = _nest(parsed.definitions)
    comments = _comments(parsed.comments, nested)
    docs = _docstrings(parsed.module_doc, nested, is_jsdoc=grammar not in {None, "python"})
    return FileFacts(
        path=path,
        language=language_of(path),
        content_hash=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
        mtime_ns=status.st_mtime_ns,
        inode=status.st_ino,
        parse_error=parse_error,
        symbols=tuple(
            (one.name, name, kind, one.start_line, one.end_line, one.signature, parent)
            for one, parent, (name, kind) in zip(nested, parents, names, strict=True)
        ),
        docstrings=docs,
        comments=comments,
        imports=tuple(dict.fromkeys(one._replace(start=0) for one in parsed.imports)),
        terms=_terms(
            path,
            (one.name for one in nested),
            "\n".join(doc[1] for doc in docs),
            "\n".join(comment[2] for comment in comments),
            text,
        ),
    )


def prepare(grammars: Iterable[str]) -> None:
    """The grammars' queries are compiled: before a fork, so that it happens once."""
    for grammar in grammars:
        _query(grammar)


@cache
def _query(grammar: str) -> Query:
    return Query(syntax.language(grammar), READERS[grammar].query(grammar))


@cache
def _error_query(grammar: str) -> Query:
    return Query(syntax.language(grammar), "(ERROR) @error (MISSING) @error")


def _parse(text: str, grammar: str | None) -> tuple[Parsed, str | None]:
    source = text.encode()
    if grammar is None or len(source) > syntax.MAX_PARSED_BYTES:
        return Parsed(), None
    root = syntax.parse(source, grammar).root_node
    captures = QueryCursor(_query(grammar)).captures(root)
    error = _first_error(root, grammar) if root.has_error else None
    return READERS[grammar].read(root, captures, source), error


def _first_error(root: Node, grammar: str) -> str:
    nodes = QueryCursor(_error_query(grammar)).captures(root).get("error", [])
    row, column = min((tuple(node.start_point) for node in nodes), default=(0, 0))
    return f"line {row + 1}, column {column + 1}"


def _nest(definitions: list[Definition]) -> tuple[list[Definition], list[int], list[tuple[str, str]]]:
    """The definitions that count, by position; for each its parent's place or -1, and its qualified name and kind."""
    kept: list[Definition] = []
    parents: list[int] = []
    names: list[tuple[str, str]] = []
    seen: set[tuple[int, str]] = set()
    open_: list[int] = []
    for one in sorted(definitions, key=lambda one: (one.start, -one.end)):
        while open_ and kept[open_[-1]].end <= one.start:
            open_.pop()
        parent = open_[-1] if open_ else -1
        parent_name, parent_kind = names[parent] if open_ else ("", "")
        kind = "method" if one.kind == "function" and parent_kind in {"class", "interface"} else one.kind
        if _counts(one, kind, parent, parent_kind, seen):
            seen.add((parent, one.name) if kind == "variable" else (-2, ""))
            qualified = ".".join(part for part in (parent_name, one.owner, one.name) if part)
            if one.holds:
                open_.append(len(kept))
            kept.append(one)
            parents.append(parent)
            names.append((qualified, kind))
    return kept, parents, names


def _counts(one: Definition, kind: str, parent: int, parent_kind: str, seen: set[tuple[int, str]]) -> bool:
    if not one.name or (one.needs_holder and parent_kind not in HOLDERS):
        return False
    if kind not in {"variable", "type_alias"}:
        return True
    local = parent_kind in {"function", "method"}
    return not local and (kind == "type_alias" or (parent, one.name) not in seen)


def _docstrings(module_doc: str, nested: list[Definition], *, is_jsdoc: bool) -> tuple[DocFacts, ...]:
    docs = [(-1, module_doc), *((place, one.doc) for place, one in enumerate(nested))]
    return tuple((place, doc, *read_docstring(doc, is_jsdoc=is_jsdoc)) for place, doc in docs if doc.strip())


def _comments(comments: list[Comment], nested: list[Definition]) -> tuple[CommentFacts, ...]:
    facts: list[CommentFacts] = []
    open_: list[int] = []
    place = 0
    for comment in comments:
        while place < len(nested) and nested[place].start <= comment.start:
            while open_ and nested[open_[-1]].end <= nested[place].start:
                open_.pop()
            open_.append(place)
            place += 1
        while open_ and nested[open_[-1]].end <= comment.start:
            open_.pop()
        kind, gives_reason = classify(comment.text)
        facts.append((open_[-1] if open_ else -1, comment.line, comment.text, kind, gives_reason))
    return tuple(facts)


def _terms(path: str, names: Iterable[str], docstrings: str, comments: str, text: str) -> TermFacts:
    fields: tuple[Counter[str], ...] = (
        count_terms(path),
        count_terms(" ".join(names)),
        count_terms(docstrings),
        count_terms(comments),
        count_terms(text),
    )
    by_path, by_symbols, by_docstrings, by_comments, by_body = fields
    return {
        term: (by_path[term], by_symbols[term], by_docstrings[term], by_comments[term], by_body[term])
        for term in set().union(*fields)
    }
