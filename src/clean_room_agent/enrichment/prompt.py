"""The prompt `enrichment`: what is one file for?"""

from typing import Annotated

from msgspec import Struct
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from clean_room_agent.llm.answer_rules import NAME_CHARS, SENTENCES_CHARS, bounds
from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import Prompt, template

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
    outline: tuple[str, ...]
    """One entry a definition, by line; an entry may have several lines."""
    outline_left_out: int
    text: str
    """Without the line end of its last line."""
    remark: str
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
