"""The prompt `enrichment`, what is one file for?, and how much of a file it shows."""

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
"""Imported and importing files that a prompt names, first by path."""
LONG_VALUE = 160
"""Characters; of a variable or type alias with a longer text, the outline has the name alone."""
VALUES = frozenset({"variable", "type_alias"})
MAX_CONCEPTS = 8
MAX_SURFACE = 20


class EnrichmentInputs(Struct, frozen=True, kw_only=True):
    """What is known of a file without a model."""

    path: str
    language: str
    lines: int
    """0 where the text cannot be read as lines."""
    imports: tuple[str, ...]
    imported_by: tuple[str, ...]
    commits: tuple[str, ...]
    """Subjects, newest first."""
    outline: tuple[str, ...] = ()
    """One entry a definition, by line; an entry may have several lines."""
    text: str = ""
    """Without the line end of its last line."""
    remark: str = ""
    """What of the text is not shown; "" where all of it is."""


def _as_list(value: object) -> object:
    """A list, where small models write a text with commas, or null."""
    if isinstance(value, str):
        value = value.split(",")
    if isinstance(value, list):
        return [entry.strip() for entry in value if isinstance(entry, str) and entry.strip()]
    return () if value is None else value


def _null_to_empty(value: object) -> object:
    """Null as an empty text."""
    return "" if value is None else value


def _as_lowercase(value: object) -> object:
    if isinstance(value, list | tuple):
        return [entry.lower() for entry in value]
    return value.lower() if isinstance(value, str) else value


Word = Annotated[str, bounds(maxLength=NAME_CHARS)]


class EnrichmentAnswer(BaseModel):
    """A description. Keys are in alphabetical order, because some servers sort them."""

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True)

    complexity_notes: Annotated[str, BeforeValidator(_null_to_empty), bounds(maxLength=SENTENCES_CHARS)]
    concepts: Annotated[
        tuple[Word, ...],
        BeforeValidator(lambda value: _as_lowercase(_as_list(value))),
        bounds(maxItems=MAX_CONCEPTS),
    ]
    domain: Annotated[
        str, BeforeValidator(lambda value: _as_lowercase(_null_to_empty(value))), bounds(maxLength=NAME_CHARS)
    ]
    module: Annotated[str, BeforeValidator(_null_to_empty), bounds(maxLength=NAME_CHARS)]
    public_api_surface: Annotated[tuple[Word, ...], BeforeValidator(_as_list), bounds(maxItems=MAX_SURFACE)]
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


def read_inputs(kb: KnowledgeBase, root: Path, file: FileRow) -> EnrichmentInputs | None:
    """All that is known of the file; None where it has changed since it was indexed."""
    try:
        data = read_bytes(root, file.path)
    except OSError:
        return None
    if content_hash(data) != file.content_hash:
        return None
    text, remark = "", ""
    try:
        text = decode(data).text.removesuffix("\n")
    except NotTextError as exc:
        remark = f"it cannot be shown: {exc}"
    commits = kb.get_recent_commits_for_file(file.id, limit=COMMITS)
    return EnrichmentInputs(
        path=file.path,
        language=file.language,
        lines=text.count("\n") + 1 if text else 0,
        imports=_neighbour_paths(kb.get_dependencies(file.id, direction="imports")),
        imported_by=_neighbour_paths(kb.get_dependencies(file.id, direction="imported_by")),
        commits=tuple(commit.message.strip().split("\n", 1)[0] for commit in commits),
        outline=tuple(
            indent(_headline(symbol), "    " * symbol.qualified_name.count("."))
            for symbol in kb.get_symbols_for_file(file.id)
        ),
        text=text,
        remark=remark,
    )


def shortened(
    inputs: EnrichmentInputs, max_tokens: int, measure: Callable[[EnrichmentInputs], int]
) -> EnrichmentInputs:
    """The inputs with as much of the file as a request of `max_tokens` tokens holds: half of the lines are left out until it
    fits; then, without any, half of the definitions. `measure` counts the tokens of a whole request.
    """
    lines = inputs.text.split("\n") if inputs.text else []
    while (lines or inputs.outline) and measure(inputs) > max_tokens:
        if lines:
            lines = lines[: len(lines) // 2]
            first = f"the first {len(lines)} of {inputs.lines} lines; the rest does not fit"
            remark = first if lines else "it is too long to be shown"
            inputs = replace(inputs, text="\n".join(lines), remark=remark)
        else:
            inputs = replace(inputs, outline=inputs.outline[: len(inputs.outline) // 2])
    return inputs


def _neighbour_paths(rows: Iterable[DependencyRow]) -> tuple[str, ...]:
    return tuple(sorted({row.file.path for row in rows}))[:NEIGHBOURS]


def _headline(symbol: SymbolRow) -> str:
    if symbol.kind in VALUES and (len(symbol.signature) > LONG_VALUE or not symbol.signature):
        kind = symbol.kind.replace("_", " ")
        return f"{symbol.name} ({kind}, lines {symbol.start_line}-{symbol.end_line})"
    return symbol.signature.strip() or f"{symbol.name} ({symbol.kind})"
