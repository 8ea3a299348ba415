"""What a prompt may show of a file: what the index knows of it, and as much of its text as fits."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from textwrap import indent

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.db.curated.files import DependencyRow, FileRow
from clean_room_agent.db.curated.symbols import SymbolRow
from clean_room_agent.enrichment.prompt import EnrichmentInputs
from clean_room_agent.file_contents import NotTextError, content_hash, decode
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.safe_open import read_bytes

COMMITS = 6
"""The newest commits whose subject lines a prompt shows."""
NEIGHBOURS = 20
"""Imported and importing files that a prompt names, first by path; of the rest it gives the number."""
LONG_VALUE = 160
"""Characters; of a variable or type alias with a longer text, the outline has the name alone."""
VALUES = frozenset({"variable", "type_alias"})
PARAGRAPH = re.compile(r"\n[ \t]*\n")

Measure = Callable[[EnrichmentInputs], int]
"""Tokens of the whole request."""


class KnownFile(Struct, frozen=True, kw_only=True):
    """What is known of one file without a model."""

    file: FileRow
    lines: tuple[str, ...]
    """Without line ends; empty where the file is not text."""
    unreadable: str
    """Why it is not text; "" where it is."""
    symbols: tuple[SymbolRow, ...]
    """By first line, the enclosing before the enclosed."""
    docs: dict[int | None, str]
    """By symbol; None: the module's own."""
    imports: tuple[str, ...]
    """Paths, sorted."""
    imported_by: tuple[str, ...]
    commits: tuple[str, ...]
    """Subjects, newest first."""


def read_facts(kb: KnowledgeBase, root: Path, path: str) -> KnownFile | None:
    """The facts of the file at `path`; None where it is not indexed, or has changed since."""
    file = kb.get_file_by_path(path)
    try:
        data = read_bytes(root, path)
    except OSError:
        return None
    if file is None or content_hash(data) != file.content_hash:
        return None
    try:
        text, unreadable = decode(data).text, ""
    except NotTextError as exc:
        text, unreadable = "", str(exc)
    return KnownFile(
        file=file,
        lines=tuple(text.removesuffix("\n").split("\n")) if text else (),
        unreadable=unreadable,
        symbols=kb.get_symbols_for_file(file.id),
        docs={doc.symbol_id: doc.content.strip() for doc in reversed(kb.get_docstrings_for_file(file.id))},
        imports=_paths(kb.get_dependencies(file.id, direction="imports")),
        imported_by=_paths(kb.get_dependencies(file.id, direction="imported_by")),
        commits=tuple(
            commit.message.strip().split("\n", 1)[0]
            for commit in kb.get_recent_commits_for_file(file.id, limit=COMMITS)
        ),
    )


def fit(facts: KnownFile, max_tokens: int, measure: Measure) -> EnrichmentInputs:
    """The fullest view of the file whose request has at most `max_tokens` tokens; the smallest view if none has.

    In this order: the whole text; of a file without definitions, its first lines; an outline with the first paragraphs of
    the documentation; the signatures of the outermost definitions.
    """
    if facts.lines:
        whole = replace(_bare(facts), outline=_outline(facts.symbols, {}), text="\n".join(facts.lines))
        if measure(whole) <= max_tokens:
            return whole
        if not facts.symbols:
            return _largest(
                lambda count: _first_lines(facts, count), len(facts.lines) - 1, max_tokens, measure
            )
    documented = without_text(facts, _outline(facts.symbols, facts.docs))
    if measure(documented) <= max_tokens:
        return documented
    return _largest(
        lambda count: without_text(facts, outermost(facts, count)), len(facts.symbols), max_tokens, measure
    )


def without_text(facts: KnownFile, outline: tuple[str, ...]) -> EnrichmentInputs:
    """The view that shows this outline and no text."""
    reason = f"it cannot be shown: {facts.unreadable}" if facts.unreadable else "it is too long to be shown"
    own = facts.docs.get(None, "")
    return replace(
        _bare(facts),
        outline=((own, *outline) if own and outline else outline),
        outline_left_out=len(facts.symbols) - len(outline),
        remark=reason if facts.lines or facts.unreadable else "it is empty",
    )


def outermost(facts: KnownFile, count: int) -> tuple[str, ...]:
    """The signatures of so many definitions, the outermost first to be chosen, in the order of their lines."""
    chosen = sorted(facts.symbols, key=lambda symbol: (_depth(symbol), symbol.start_line))[:count]
    return _outline([symbol for symbol in facts.symbols if symbol in chosen], {})


def _bare(facts: KnownFile) -> EnrichmentInputs:
    return EnrichmentInputs(
        path=facts.file.path,
        language=facts.file.language,
        lines=len(facts.lines),
        imports=facts.imports[:NEIGHBOURS],
        imports_left_out=max(0, len(facts.imports) - NEIGHBOURS),
        imported_by=facts.imported_by[:NEIGHBOURS],
        imported_by_left_out=max(0, len(facts.imported_by) - NEIGHBOURS),
        commits=facts.commits,
        outline=(),
        outline_left_out=0,
        text="",
        remark="",
    )


def _first_lines(facts: KnownFile, count: int) -> EnrichmentInputs:
    if not count:
        return without_text(facts, ())
    return replace(
        _bare(facts),
        text="\n".join(facts.lines[:count]),
        remark=f"the first {count} of {len(facts.lines)} lines; the rest does not fit",
    )


def _largest(
    view: Callable[[int], EnrichmentInputs], most: int, max_tokens: int, measure: Measure
) -> EnrichmentInputs:
    """The view of the largest number from 0 to `most` that fits; of 0 where none does."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if measure(view(middle)) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return view(low)


def _outline(symbols: Sequence[SymbolRow], docs: dict[int | None, str]) -> tuple[str, ...]:
    """An entry for each definition, with the first paragraph of its documentation."""
    entries = []
    for symbol in symbols:
        margin = "    " * _depth(symbol)
        head = indent(_headline(symbol), margin)
        doc = PARAGRAPH.split(docs.get(symbol.id, ""), maxsplit=1)[0].strip()
        entries.append(f"{head}\n{indent(doc, margin + '    ')}" if doc else head)
    return tuple(entries)


def _depth(symbol: SymbolRow) -> int:
    return symbol.qualified_name.count(".")


def _headline(symbol: SymbolRow) -> str:
    if symbol.kind in VALUES and (len(symbol.signature) > LONG_VALUE or not symbol.signature):
        kind = symbol.kind.replace("_", " ")
        return f"{symbol.name} ({kind}, lines {symbol.start_line}-{symbol.end_line})"
    return symbol.signature.strip() or f"{symbol.name} ({symbol.kind})"


def _paths(rows: Iterable[DependencyRow]) -> tuple[str, ...]:
    return tuple(sorted({row.file.path for row in rows}))
