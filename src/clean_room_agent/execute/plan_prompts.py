"""The prompts that plan in one call each: the parts of a task, the steps of a part, and what remains of a part after a step; and
the shapes in which a model writes parts and steps.

Keys are in alphabetical order, because some servers sort them: what has to be thought of first must sort first. The
schema sent to a server has more limits than are checked when an answer is read (see `llm/answer_rules.py`).
"""

import re
from collections.abc import Callable, Collection
from typing import Annotated, Any, TypeVar

from msgspec import Struct
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from clean_room_agent.artifacts.context import SectionTexts
from clean_room_agent.artifacts.plans import FileRole
from clean_room_agent.llm.answer_rules import (
    ID_PATTERN,
    NAME_CHARS,
    PATH_CHARS,
    SENTENCE_CHARS,
    SENTENCES_CHARS,
    JsonSchema,
    at_most,
    bounds,
)
from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import CONTEXT, KNOWN, SYSTEM, InputsT, Prompt, template

ModelT = TypeVar("ModelT", bound=BaseModel)
MAX_FILES = 8
MAX_NEEDS = 4
MAX_SYMBOLS = 8
MAX_PARTS = 12
MAX_STEPS = 12
MAX_ODD = 100
"""Paths that a schema lists because they do not look like paths of files."""
MAX_POINTS = 12
MAX_TARGETS = 12
PART_ID_PATTERN = "^[a-z][a-z0-9-]{0,23}$"
STEP_ID_PATTERN = "^s[1-9][0-9]?$"
"""Ids as the prompts ask for them."""
NAMED = "[A-Za-z0-9_@+.-]"
FILE_PATTERN = f"^({NAMED}{{1,60}}/){{0,9}}({NAMED}{{1,60}}[.][a-z][a-z0-9]{{0,7}}|[A-Z][A-Za-z]{{2,30}}|[.][a-z]{{2,30}})$"
"""What looks like a file's path: `src/a.py`, `Makefile`, `.gitignore`."""
FILE_PATH = re.compile(FILE_PATTERN)
ROLE_WORDS = {
    "add": "create",
    "new": "create",
    "remove": "delete",
    "edit": "modify",
    "change": "modify",
    "update": "modify",
}
Identifier = Annotated[str, bounds(pattern=ID_PATTERN)]
SymbolName = Annotated[str, bounds(maxLength=NAME_CHARS)]
Sentence = Annotated[str, bounds(maxLength=SENTENCE_CHARS)]
Sentences = Annotated[str, bounds(maxLength=SENTENCES_CHARS)]
Needs = Annotated[tuple[Identifier, ...], bounds(maxItems=MAX_NEEDS)]
TargetNumber = Annotated[int, bounds(minimum=1, maximum=MAX_TARGETS)]
TASK = CONTEXT + "{{ task.strip() | task }}\n"
UNDER_WAY = (
    f"""\
{TASK}"""
    """
## The part of it under way
{{ part | part }}
{% if diff %}

## Changes made so far
{{ diff.rstrip() | diff }}
{% endif %}
"""
)
"""The beginning of all judgments about a plan in progress."""
STEPS_SO_FAR = """\
{% if done %}

## Steps so far
{% for line in done %}
{{ line | step }}
{% endfor %}
{% endif %}
"""
META_PLAN_EXAMPLE = (
    '{"analysis": "count_quokkas leaves out the young, and the quokka menu relies on it.", "parts": ['
    '{"description": "Let count_quokkas count the young too.", "files": ["quokka_zoo/pen.py"], '
    '"id": "quokka-count", "needs": []}, '
    '{"description": "Order two meals a day for each quokka.", "files": ["quokka_zoo/menu.py"], '
    '"id": "quokka-menu", "needs": ["quokka-count"]}], "summary": "Feed the young quokkas too."}'
)
PART_PLAN_EXAMPLE = (
    '{"analysis": "count_quokkas leaves out the young; only quokka_zoo/menu.py calls it.", "steps": ['
    '{"description": "Add the young to the sum in count_quokkas.", '
    '"files": [{"path": "quokka_zoo/pen.py", "role": "modify"}], "id": "s1", "needs": [], '
    '"symbols": ["count_quokkas"]}, '
    '{"description": "Order two meals a day for each quokka, not one.", '
    '"files": [{"path": "quokka_zoo/menu.py", "role": "modify"}], "id": "s2", "needs": ["s1"], '
    '"symbols": ["QuokkaMenu.order"]}], "summary": "Feed the young quokkas too."}'
)
ADJUSTMENT_EXAMPLE = (
    '{"analysis": "s1 already changed the quokka menu, so s2 only has the export left.", "changes": '
    '["s2: only the export of count_quokkas is left"], "steps": [{"description": "Export count_quokkas from the '
    'package.", "files": [{"path": "quokka_zoo/__init__.py", "role": "modify"}], "id": "s2", "needs": ["s1"], '
    '"symbols": ["count_quokkas"]}]}'
)


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


class PointAnswer(_Answer):
    """A place that the task changes."""

    change: Sentence
    file: PathText
    symbol: SymbolName = ""


class ChangePointsAnswer(_Answer):
    """The places that the task changes."""

    analysis: Sentences
    points: Annotated[tuple[PointAnswer, ...], bounds(maxItems=MAX_POINTS)] = Field(min_length=1)
    summary: Sentence


class TargetAnswer(_Answer):
    """A place that a part changes."""

    file: PathText
    role: Annotated[FileRole, BeforeValidator(_role)] = "modify"
    symbol: SymbolName = ""


class SymbolTargetsAnswer(_Answer):
    """The places that a part changes."""

    analysis: Sentences
    targets: Annotated[tuple[TargetAnswer, ...], bounds(maxItems=MAX_TARGETS)] = Field(min_length=1)


class DesignedStepAnswer(_Answer):
    """A step over numbered places."""

    description: Sentences
    targets: Annotated[tuple[TargetNumber, ...], bounds(maxItems=MAX_TARGETS)] = ()


class StepDesignAnswer(_Answer):
    """The steps that change given places."""

    steps: Annotated[tuple[DesignedStepAnswer, ...], bounds(maxItems=MAX_STEPS)] = Field(min_length=1)
    summary: Sentence


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


def parts_schema(schema: JsonSchema, known: Collection[str], most: int) -> JsonSchema:
    """The schema of at most so many parts, whose files are `known` or look like a file."""
    files = {"items": _path_schema(known)}
    return at_most(_with(schema, "PartAnswer", files=files), "parts", most)


def steps_schema(schema: JsonSchema, known: Collection[str], most: int) -> JsonSchema:
    """The schema of at most so many steps, called s1, s2 and so on, whose files are `known` or look like a file."""
    named = {"type": "string", "pattern": STEP_ID_PATTERN}
    schema = _with(schema, "StepAnswer", id=named, needs={"items": named})
    return at_most(_with(schema, "FileAnswer", path=_path_schema(known)), "steps", most)


def points_schema(schema: JsonSchema, known: Collection[str], most: int) -> JsonSchema:
    """The schema of at most so many changes, whose files are `known` or look like a file."""
    return at_most(_with(schema, "PointAnswer", file=_path_schema(known)), "points", most)


def targets_schema(schema: JsonSchema, known: Collection[str], most: int) -> JsonSchema:
    """The schema of at most so many places, whose files are `known` or look like a file."""
    return at_most(_with(schema, "TargetAnswer", file=_path_schema(known)), "targets", most)


def _with(schema: JsonSchema, definition: str, **changes: JsonSchema) -> JsonSchema:
    """The schema with changed values for keys of an answer; attributes that a change does not name stay."""
    found = schema["$defs"][definition]
    properties: dict[str, Any] = dict(found["properties"])
    for key, change in changes.items():
        properties[key] = {**properties[key], **change}
    return {**schema, "$defs": {**schema["$defs"], definition: {**found, "properties": properties}}}


def _path_schema(known: Collection[str]) -> JsonSchema:
    """A path that looks like a file's, or one of those few known ones that do not."""
    odd = [path for path in known if not FILE_PATH.fullmatch(path)][:MAX_ODD]
    like = {"type": "string", "pattern": FILE_PATTERN, "maxLength": PATH_CHARS}
    return {"anyOf": [{"type": "string", "enum": odd}, like]} if odd else like


class PlanInputs(Struct, frozen=True, kw_only=True):
    """A task, or a part of it, with the code that it is about; texts may be empty."""

    context: SectionTexts
    others: tuple[str, ...]
    """Paths of files of which the context shows nothing."""
    evidence: str
    task: str
    rejected: str
    """An earlier answer that had faults."""
    faults: tuple[str, ...]
    paths: tuple[str, ...] = ()
    """Of existing files, used only for the schema."""


def plan_prompt(
    *,
    name: str,
    title: str,
    known: str,
    answer: type[ModelT],
    max_answer_tokens: int,
    example: str,
    narrow: Callable[[JsonSchema, InputsT], JsonSchema],
) -> Prompt[InputsT, ModelT]:
    """A question of planning, which the reasoning model answers with JSON: the template of its name, after what is `known`."""
    return Prompt(
        name=name,
        role="reasoning",
        title=title,
        system=SYSTEM,
        template=known + template(__file__, name),
        answer=JsonAnswer(answer),
        max_answer_tokens=max_answer_tokens,
        example=example,
        narrow=narrow,
    )


class MetaPlanInputs(PlanInputs, frozen=True, kw_only=True):
    """A task to be divided into parts."""

    max_parts: int


META_PLAN: Prompt[MetaPlanInputs, MetaPlanAnswer] = plan_prompt(
    name="meta_plan",
    title="Divide a task into parts",
    known=KNOWN,
    answer=MetaPlanAnswer,
    max_answer_tokens=1200,
    example=META_PLAN_EXAMPLE,
    narrow=lambda schema, inputs: parts_schema(schema, inputs.paths, inputs.max_parts),
)


class PartInputs(PlanInputs, frozen=True, kw_only=True):
    """One part of the task; texts may be empty."""

    diff: str
    """What the run has changed so far."""
    goal: str
    """The whole plan in a sentence; "" if it adds nothing to the task."""
    part: str
    files: tuple[str, ...]
    """Named by the part."""


class PartPlanInputs(PartInputs, frozen=True, kw_only=True):
    """A part to be divided into steps."""

    max_steps: int
    max_lines: int
    """Of the edits of one step."""


PART_PLAN: Prompt[PartPlanInputs, PartPlanAnswer] = plan_prompt(
    name="part_plan",
    title="Divide a part of a task into steps",
    known=KNOWN,
    answer=PartPlanAnswer,
    max_answer_tokens=1200,
    example=PART_PLAN_EXAMPLE,
    narrow=lambda schema, inputs: steps_schema(schema, inputs.paths, inputs.max_steps),
)


class UnderWayInputs(Struct, frozen=True, kw_only=True):
    """A plan in progress, as `UNDER_WAY` shows it."""

    task: str
    """The user's words."""
    part: str
    """The part of it that the plan is for."""
    diff: str
    """What the run has changed so far; may be empty."""


class AdjustmentInputs(UnderWayInputs, frozen=True, kw_only=True):
    """A plan whose remaining steps are to be revised; texts may be empty."""

    context: SectionTexts
    done: tuple[str, ...]
    """The outcome of each step that was tried, one text each."""
    remaining: str
    """The remaining steps, as JSON in the answer's shape."""
    max_steps: int
    rejected: str
    faults: tuple[str, ...]


ADJUSTMENT: Prompt[AdjustmentInputs, AdjustmentAnswer] = plan_prompt(
    name="adjustment",
    title="Revise the remaining steps of a plan",
    known=TASK,
    answer=AdjustmentAnswer,
    max_answer_tokens=1200,
    example=ADJUSTMENT_EXAMPLE,
    narrow=lambda schema, inputs: at_most(schema, "steps", inputs.max_steps),
)
