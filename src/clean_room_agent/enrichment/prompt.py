"""The prompt `enrichment`, what is one file for?, and how much of a file it shows."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from pathlib import Path
from textwrap import indent
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from clean_room_agent.db.curated.files import DependencyRow, FileRow
from clean_room_agent.db.curated.symbols import SymbolRow
from clean_room_agent.file_contents import NotTextError, content_hash, decode
from clean_room_agent.llm.answer_rules import NAME_CHARS, SENTENCES_CHARS, bounds
from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import Prompt, template
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.safe_open import read_bytes

COMMITS = 6
"""The newest commits whose subject lines a prompt shows."""
NEIGHBOURS = 20
"""Imported and importing files that a prompt names, first by path; of the rest it gives the number."""
LONG_VALUE = 160
"""Characters; of a variable or type alias with a longer text, the outline has the name alone."""
VALUES = frozenset({"variable", "type_alias"})
MAX_CONCEPTS = 8
MAX_SURFACE = 20


class EnrichmentInputs(Struct, frozen=True, kw_only=True):
    """What is known of a file without a model. What does not fit is counted, or named in `remark`."""

    path: str
    language: str
    lines: int
    """0 where the text cannot be read as lines."""
    imports: tuple[str, ...]
    imports_left_out: int
    imported_by: tuple[str, ...]
    imported_by_left_out: int
    commits: tuple[str, ...]
    """Subjects, newest first."""
    outline: tuple[str, ...] = ()
    """One entry a definition, by line; an entry may have several lines."""
    outline_left_out: int = 0
    text: str = ""
    """Without the line end of its last line."""
    remark: str = ""
    """What of the text is not shown; "" where all of it is."""


def _listed(value: object) -> object:
    """A list, where small models write a text with commas, or null."""
    if isinstance(value, str):
        value = value.split(",")
    if isinstance(value, list):
        return [entry.strip() for entry in value if isinstance(entry, str) and entry.strip()]
    return () if value is None else value


def _text(value: object) -> object:
    """Null as an empty text."""
    return "" if value is None else value


def _lower(value: object) -> object:
    if isinstance(value, list | tuple):
        return [entry.lower() for entry in value]
    return value.lower() if isinstance(value, str) else value


Word = Annotated[str, bounds(maxLength=NAME_CHARS)]


class EnrichmentAnswer(BaseModel):
    """A description. Keys are in alphabetical order, because some servers sort them."""

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True)

    complexity_notes: Annotated[str, BeforeValidator(_text), bounds(maxLength=SENTENCES_CHARS)]
    concepts: Annotated[
        tuple[Word, ...], BeforeValidator(lambda value: _lower(_listed(value))), bounds(maxItems=MAX_CONCEPTS)
    ]
    domain: Annotated[str, BeforeValidator(lambda value: _lower(_text(value))), bounds(maxLength=NAME_CHARS)]
    module: Annotated[str, BeforeValidator(_text), bounds(maxLength=NAME_CHARS)]
    public_api_surface: Annotated[tuple[Word, ...], BeforeValidator(_listed), bounds(maxItems=MAX_SURFACE)]
    purpose: Annotated[str, bounds(maxLength=SENTENCES_CHARS)] = Field(min_length=1)


EXAMPLE = (
    '{"complexity_notes": "Quokkas are weighed before they are fed; the order must not change.", '
    '"concepts": ["quokka", "quokka feeding"], "domain": "quokka keeping", "module": "quokka_zoo", '
    '"public_api_surface": ["count_quokkas", "QuokkaPen.open"], '
    '"purpose": "Keep the quokkas of a pen and reckon what they eat in a day."}'
)

ENRICHMENT: Prompt[EnrichmentInputs, EnrichmentAnswer] = Prompt(
    name="enrichment",
    role="reasoning",
    title="Describe a file",
    system="You are a precise assistant for programmers. You answer in the form that is asked for, with nothing around it.",
    template=template(__file__, "enrichment"),
    answer=JsonAnswer(EnrichmentAnswer),
    max_answer_tokens=700,
    example=EXAMPLE,
)


class KnownFile(Struct, frozen=True, kw_only=True):
    """What is known of one file without a model."""

    known: EnrichmentInputs
    """All but the outline and the text."""
    lines: tuple[str, ...]
    """Without line ends; empty where the file is not text."""
    symbols: tuple[SymbolRow, ...]
    """By first line, the enclosing before the enclosed."""

    def fullest_view(self, max_tokens: int, measure: Callable[[EnrichmentInputs], int]) -> EnrichmentInputs:
        """The fullest view of the file whose request has at most `max_tokens` tokens; the smallest view if none has.

        All definitions and as many lines as fit; else no line, and as many definitions as fit. `measure` counts the tokens
        of a whole request.
        """

        def fitting(view: Callable[[int], EnrichmentInputs], most: int) -> int:
            return bisect_right(range(most + 1), max_tokens, key=lambda count: measure(view(count))) - 1

        lines = fitting(self._first_lines, len(self.lines))
        if lines >= 0:
            return self._first_lines(lines)
        return self.outermost(max(fitting(self.outermost, len(self.symbols)), 0))

    def _first_lines(self, count: int) -> EnrichmentInputs:
        shown = self.outermost(len(self.symbols))
        if not count:
            return shown
        rest = f"the first {count} of {len(self.lines)} lines; the rest does not fit"
        remark = "" if count == len(self.lines) else rest
        return replace(shown, text="\n".join(self.lines[:count]), remark=remark)

    def outermost(self, count: int) -> EnrichmentInputs:
        """The view without text that has so many definitions, the outermost first to be chosen."""
        ranked = sorted(self.symbols, key=lambda symbol: (_depth(symbol), symbol.start_line))
        chosen = {symbol.id for symbol in ranked[:count]}
        return replace(
            self.known,
            outline=tuple(
                indent(_headline(symbol), "    " * _depth(symbol))
                for symbol in self.symbols
                if symbol.id in chosen
            ),
            outline_left_out=len(self.symbols) - len(chosen),
            remark=self.known.remark or "it is too long to be shown",
        )


def read_known(kb: KnowledgeBase, root: Path, file: FileRow) -> KnownFile | None:
    """What is known of the file; None where it has changed since it was indexed."""
    try:
        data = read_bytes(root, file.path)
    except OSError:
        return None
    if content_hash(data) != file.content_hash:
        return None
    text, remark = "", ""
    try:
        text = decode(data).text
    except NotTextError as exc:
        remark = f"it cannot be shown: {exc}"
    lines = tuple(text.removesuffix("\n").split("\n")) if text else ()
    imports = _paths(kb.get_dependencies(file.id, direction="imports"))
    imported_by = _paths(kb.get_dependencies(file.id, direction="imported_by"))
    commits = kb.get_recent_commits_for_file(file.id, limit=COMMITS)
    known = EnrichmentInputs(
        path=file.path,
        language=file.language,
        lines=len(lines),
        imports=imports[:NEIGHBOURS],
        imports_left_out=max(0, len(imports) - NEIGHBOURS),
        imported_by=imported_by[:NEIGHBOURS],
        imported_by_left_out=max(0, len(imported_by) - NEIGHBOURS),
        commits=tuple(commit.message.strip().split("\n", 1)[0] for commit in commits),
        remark=remark,
    )
    return KnownFile(known=known, lines=lines, symbols=kb.get_symbols_for_file(file.id))


def _paths(rows: Iterable[DependencyRow]) -> tuple[str, ...]:
    return tuple(sorted({row.file.path for row in rows}))


def _depth(symbol: SymbolRow) -> int:
    return symbol.qualified_name.count(".")


def _headline(symbol: SymbolRow) -> str:
    if symbol.kind in VALUES and (len(symbol.signature) > LONG_VALUE or not symbol.signature):
        kind = symbol.kind.replace("_", " ")
        return f"{symbol.name} ({kind}, lines {symbol.start_line}-{symbol.end_line})"
    return symbol.signature.strip() or f"{symbol.name} ({symbol.kind})"
