"""The shapes in which a model writes parts and steps.

Keys stand in alphabetical order, because some servers sort them: what has to be thought of first must sort first.
What a server is sent has more bounds than what is read has (see `llm/schema.py`).
"""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from clean_room_agent.artifacts.plans import FileRole
from clean_room_agent.llm.schema import (
    ID_PATTERN,
    NAME_CHARS,
    PATH_CHARS,
    SENTENCE_CHARS,
    SENTENCES_CHARS,
    bounds,
)

MAX_FILES = 12
MAX_NEEDS = 8
MAX_SYMBOLS = 12
MAX_PARTS = 12
MAX_STEPS = 12
PART_ID_PATTERN = "^[a-z][a-z0-9-]{0,23}$"
"""As the prompt asks for it."""

ROLE_WORDS = {
    "add": "create",
    "new": "create",
    "remove": "delete",
    "edit": "modify",
    "change": "modify",
    "update": "modify",
}


def _role(value: object) -> object:
    word = value.strip().lower() if isinstance(value, str) else value
    return ROLE_WORDS.get(word, word) if isinstance(word, str) else word


def _file(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


def _path(value: object) -> object:
    return value.strip().removeprefix("./") if isinstance(value, str) else value


class _Answer(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True, frozen=True)


PathText = Annotated[str, BeforeValidator(_path), bounds(maxLength=PATH_CHARS)]
Identifier = Annotated[str, bounds(pattern=ID_PATTERN)]
SymbolName = Annotated[str, bounds(maxLength=NAME_CHARS)]
Sentence = Annotated[str, bounds(maxLength=SENTENCE_CHARS)]
Sentences = Annotated[str, bounds(maxLength=SENTENCES_CHARS)]
Needs = Annotated[tuple[Identifier, ...], bounds(maxItems=MAX_NEEDS)]


class FileAnswer(_Answer):
    """A file of a step."""

    path: PathText
    role: Annotated[FileRole, BeforeValidator(_role)] = "modify"


class PartAnswer(_Answer):
    """A part of the task."""

    description: Sentences
    files: Annotated[tuple[PathText, ...], bounds(maxItems=MAX_FILES)] = ()
    id: Annotated[str, bounds(pattern=PART_ID_PATTERN)]
    needs: Needs = ()


class StepAnswer(_Answer):
    """A step of a part."""

    description: Sentences
    files: Annotated[tuple[Annotated[FileAnswer, BeforeValidator(_file)], ...], bounds(maxItems=MAX_FILES)]
    id: Identifier
    needs: Needs = ()
    symbols: Annotated[tuple[SymbolName, ...], bounds(maxItems=MAX_SYMBOLS)] = ()


class MetaPlanAnswer(_Answer):
    """The task in parts."""

    analysis: Sentences
    parts: Annotated[tuple[PartAnswer, ...], bounds(maxItems=MAX_PARTS)] = Field(min_length=1)
    summary: Sentence


class PartPlanAnswer(_Answer):
    """A part in steps."""

    analysis: Sentences
    steps: Annotated[tuple[StepAnswer, ...], bounds(maxItems=MAX_STEPS)] = Field(min_length=1)
    summary: Sentence


class AdjustmentAnswer(_Answer):
    """What remains, revised."""

    analysis: Sentences
    changes: Annotated[tuple[Sentence, ...], bounds(maxItems=MAX_STEPS)] = ()
    steps: Annotated[tuple[StepAnswer, ...], bounds(maxItems=MAX_STEPS)]
