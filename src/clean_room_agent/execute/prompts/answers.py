"""The shapes in which a model writes parts and steps.

Keys stand in alphabetical order, because some servers sort them: what has to be thought of first must sort first.
"""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from clean_room_agent.artifacts.plans import FileRole

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


PathText = Annotated[str, BeforeValidator(_path)]


class FileAnswer(_Answer):
    """A file of a step."""

    path: PathText
    role: Annotated[FileRole, BeforeValidator(_role)] = "modify"


class PartAnswer(_Answer):
    """A part of the task."""

    description: str
    files: tuple[PathText, ...] = ()
    id: str
    needs: tuple[str, ...] = ()


class StepAnswer(_Answer):
    """A step of a part."""

    description: str
    files: tuple[Annotated[FileAnswer, BeforeValidator(_file)], ...]
    id: str
    needs: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()


class MetaPlanAnswer(_Answer):
    """The task in parts."""

    analysis: str
    parts: tuple[PartAnswer, ...] = Field(min_length=1)
    summary: str


class PartPlanAnswer(_Answer):
    """A part in steps."""

    analysis: str
    steps: tuple[StepAnswer, ...] = Field(min_length=1)
    summary: str


class AdjustmentAnswer(_Answer):
    """What remains, revised."""

    analysis: str
    changes: tuple[str, ...] = ()
    steps: tuple[StepAnswer, ...]
