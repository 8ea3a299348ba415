"""The prompts of planning, and the shapes in which a model writes parts and steps. Three of them plan in one call each: the
parts of a task, the steps of a part, and what remains of a part after a step. The others ask one small question each.

Keys are in alphabetical order, because some servers sort them: what has to be thought of first must sort first. The
schema sent to a server has more limits than are checked when an answer is read (see `llm/answer_rules.py`).
"""

import re
from collections.abc import Collection
from typing import Annotated, Any

from msgspec import Struct
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from clean_room_agent.artifacts.context import SectionTexts, section_texts
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
from clean_room_agent.llm.answers import Choice, JsonAnswer
from clean_room_agent.llm.prompt import CONTEXT, KNOWN, SYSTEM, InputsT, Prompt, template, yes_no_prompt

DIFF_CHARS = 2000
"""Of the newest changes, in a question about a plan in progress."""
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


def _usual_role(value: object) -> object:
    word = value.strip().lower() if isinstance(value, str) else value
    return ROLE_WORDS.get(word, word) if isinstance(word, str) else word


def _as_file(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


def _relative_path(value: object) -> object:
    return value.strip().removeprefix("./") if isinstance(value, str) else value


class _Answer(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True, frozen=True)


PathText = Annotated[str, BeforeValidator(_relative_path), bounds(maxLength=PATH_CHARS)]


class FileAnswer(_Answer):
    """A file of a step."""

    path: PathText
    role: Annotated[FileRole, BeforeValidator(_usual_role)] = "modify"


class PartAnswer(_Answer):
    """A part of the task."""

    description: Sentences
    files: Annotated[tuple[PathText, ...], bounds(maxItems=MAX_FILES)] = ()
    id: Annotated[str, bounds(pattern=PART_ID_PATTERN)]
    needs: Needs = ()


class StepAnswer(_Answer):
    """A step of a part."""

    description: Sentences
    files: Annotated[tuple[Annotated[FileAnswer, BeforeValidator(_as_file)], ...], bounds(maxItems=MAX_FILES)]
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
    role: Annotated[FileRole, BeforeValidator(_usual_role)] = "modify"
    symbol: SymbolName = ""


class SymbolTargetsAnswer(_Answer):
    """The places that a part changes."""

    analysis: Sentences
    targets: Annotated[tuple[TargetAnswer, ...], bounds(maxItems=MAX_TARGETS)] = Field(min_length=1)


class DesignedStepAnswer(_Answer):
    """A step over numbered places."""

    description: Sentences
    targets: Annotated[
        tuple[Annotated[int, bounds(minimum=1, maximum=MAX_TARGETS)], ...], bounds(maxItems=MAX_TARGETS)
    ] = ()


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


def steps_schema(schema: JsonSchema, known: Collection[str], most: int) -> JsonSchema:
    """The schema of at most so many steps, called s1, s2 and so on, whose files are `known` or look like a file."""
    named = {"type": "string", "pattern": STEP_ID_PATTERN}
    schema = _with_properties(schema, "StepAnswer", id=named, needs={"items": named})
    return at_most(_with_paths(schema, known, "FileAnswer", "path"), "steps", most)


def _with_paths(schema: JsonSchema, known: Collection[str], definition: str, key: str) -> JsonSchema:
    """The schema in which the key of an answer is a path, or a list of paths."""
    path = _path_schema(known)
    return _with_properties(schema, definition, **{key: {"items": path} if key == "files" else path})


def _with_properties(schema: JsonSchema, definition: str, **changes: JsonSchema) -> JsonSchema:
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
    """What the prompts that write plans show; texts may be empty. `ask_for_draft` fills in what may have to be
    left out, and what was wrong with an earlier answer.
    """

    context: SectionTexts = section_texts(())
    others: tuple[str, ...] = ()
    """Paths of files of which the context shows nothing."""
    diff: str = ""
    """What the run has changed so far."""
    evidence: str = ""
    task: str
    part: str = ""
    """The part of the task that is planned; "" for all of it."""
    rejected: str = ""
    """An earlier answer that had faults."""
    faults: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Of existing files, used only for the schema."""


def judgment_prompt(name: str, title: str, known: str) -> Prompt[InputsT, Choice]:
    """A yes-or-no question of planning: the template of its name, after what is `known`."""
    return yes_no_prompt(name=name, title=title, template=known + template(__file__, name))


class MetaPlanInputs(PlanInputs, frozen=True, kw_only=True):
    """A task to be divided into parts."""

    max_parts: int


META_PLAN: Prompt[MetaPlanInputs, MetaPlanAnswer] = Prompt(
    name="meta_plan",
    role="reasoning",
    title="Divide a task into parts",
    system=SYSTEM,
    template=KNOWN + template(__file__, "meta_plan"),
    answer=JsonAnswer(MetaPlanAnswer),
    max_answer_tokens=1200,
    example=META_PLAN_EXAMPLE,
    narrow=lambda schema, inputs: at_most(
        _with_paths(schema, inputs.paths, "PartAnswer", "files"), "parts", inputs.max_parts
    ),
)


class PartPlanInputs(PlanInputs, frozen=True, kw_only=True):
    """A part to be divided into steps."""

    goal: str
    """The whole plan in a sentence; "" if it adds nothing to the task."""
    files: tuple[str, ...]
    """Named by the part."""
    max_steps: int
    max_lines: int
    """Of the edits of one step."""


PART_PLAN: Prompt[PartPlanInputs, PartPlanAnswer] = Prompt(
    name="part_plan",
    role="reasoning",
    title="Divide a part of a task into steps",
    system=SYSTEM,
    template=KNOWN + template(__file__, "part_plan"),
    answer=JsonAnswer(PartPlanAnswer),
    max_answer_tokens=1200,
    example=PART_PLAN_EXAMPLE,
    narrow=lambda schema, inputs: steps_schema(schema, inputs.paths, inputs.max_steps),
)


class ChangePointsInputs(PlanInputs, frozen=True, kw_only=True):
    """A task whose changes are asked for."""

    max_points: int


CHANGE_POINTS: Prompt[ChangePointsInputs, ChangePointsAnswer] = Prompt(
    name="change_points",
    role="reasoning",
    title="List the places that a task changes",
    system=SYSTEM,
    template=KNOWN + template(__file__, "change_points"),
    answer=JsonAnswer(ChangePointsAnswer),
    max_answer_tokens=1000,
    example=(
        '{"analysis": "count_quokkas leaves out the young, and the quokka menu orders too few meals.", "points": ['
        '{"change": "Count the young quokkas too.", "file": "quokka_zoo/pen.py", "symbol": "count_quokkas"}, '
        '{"change": "Order two meals a day for each quokka.", "file": "quokka_zoo/menu.py", "symbol": "QuokkaMenu.order"}], '
        '"summary": "Feed the young quokkas too."}'
    ),
    narrow=lambda schema, inputs: at_most(
        _with_paths(schema, inputs.paths, "PointAnswer", "file"), "points", inputs.max_points
    ),
)


class SamePartInputs(Struct, frozen=True, kw_only=True):
    """Two of the changes that a task needs."""

    task: str
    changes: tuple[str, ...]
    """All of them."""
    first: str
    """With its code."""
    second: str
    known: tuple[str, ...]
    """What the code shows about the two."""


SAME_PART: Prompt[SamePartInputs, Choice] = judgment_prompt(
    "same_part", "Judge whether two changes belong together", TASK
)


class DependencyInputs(Struct, frozen=True, kw_only=True):
    """Two parts of the work on a task, or two steps of a part."""

    task: str
    drafts: tuple[str, ...]
    """All parts or steps."""
    one: str
    """With its code; it may need the other."""
    other: str


PART_DEPENDENCY: Prompt[DependencyInputs, Choice] = judgment_prompt(
    "part_dependency", "Judge whether a part needs another part first", TASK
)
STEP_DEPENDENCY: Prompt[DependencyInputs, Choice] = judgment_prompt(
    "step_dependency", "Judge whether a step needs another step first", TASK
)


class SymbolTargetsInputs(PlanInputs, frozen=True, kw_only=True):
    """A part whose places are asked for."""

    goal: str
    """As in `PartPlanInputs`, like `files`."""
    files: tuple[str, ...]
    known: tuple[str, ...] = ()
    """The definitions that the context shows."""
    max_targets: int


SYMBOL_TARGETS: Prompt[SymbolTargetsInputs, SymbolTargetsAnswer] = Prompt(
    name="symbol_targets",
    role="reasoning",
    title="List the places that a part of a task changes",
    system=SYSTEM,
    template=KNOWN + template(__file__, "symbol_targets"),
    answer=JsonAnswer(SymbolTargetsAnswer),
    max_answer_tokens=800,
    example=(
        '{"analysis": "count_quokkas leaves out the young; only quokka_zoo/menu.py calls it.", "targets": ['
        '{"file": "quokka_zoo/pen.py", "role": "modify", "symbol": "count_quokkas"}, '
        '{"file": "quokka_zoo/menu.py", "role": "modify", "symbol": "QuokkaMenu.order"}]}'
    ),
    narrow=lambda schema, inputs: at_most(
        _with_paths(schema, inputs.paths, "TargetAnswer", "file"), "targets", inputs.max_targets
    ),
)


class StepDesignInputs(PlanInputs, frozen=True, kw_only=True):
    """A part with the places that it changes. The context is that of their files."""

    targets: tuple[str, ...]
    """The places, as they are numbered."""
    max_steps: int
    max_lines: int
    """Of the edits of one step."""


STEP_DESIGN: Prompt[StepDesignInputs, StepDesignAnswer] = Prompt(
    name="step_design",
    role="reasoning",
    title="Write the steps that change given places",
    system=SYSTEM,
    template=KNOWN + template(__file__, "step_design"),
    answer=JsonAnswer(StepDesignAnswer),
    max_answer_tokens=1000,
    example=(
        '{"steps": [{"description": "Add the young to the sum in count_quokkas.", "targets": [1]}, '
        '{"description": "Order two meals a day for each quokka, not one.", "targets": [2]}], '
        '"summary": "Feed the young quokkas too."}'
    ),
    narrow=lambda schema, inputs: at_most(schema, "steps", inputs.max_steps),
)


class AdjustmentInputs(PlanInputs, frozen=True, kw_only=True):
    """A part whose remaining steps are to be revised."""

    done: tuple[str, ...]
    """The outcome of each step that was tried, one text each."""
    remaining: str
    """The remaining steps, as JSON in the answer's shape."""
    max_steps: int


ADJUSTMENT: Prompt[AdjustmentInputs, AdjustmentAnswer] = Prompt(
    name="adjustment",
    role="reasoning",
    title="Revise the remaining steps of a plan",
    system=SYSTEM,
    template=TASK + template(__file__, "adjustment"),
    answer=JsonAnswer(AdjustmentAnswer),
    max_answer_tokens=1200,
    example=ADJUSTMENT_EXAMPLE,
    narrow=lambda schema, inputs: at_most(schema, "steps", inputs.max_steps),
)


class UnderWayInputs(Struct, frozen=True, kw_only=True):
    """A plan in progress, as `UNDER_WAY` shows it."""

    task: str
    """The user's words."""
    part: str
    """The part of it that the plan is for."""
    diff: str = ""
    """What the run has changed so far."""


class StepViabilityInputs(UnderWayInputs, frozen=True, kw_only=True):
    """A plan in progress in which something failed, and one of its remaining steps."""

    done: tuple[str, ...]
    """The outcomes of the steps that were tried."""
    failures: tuple[str, ...]
    step: str


class RootCauseInputs(UnderWayInputs, frozen=True, kw_only=True):
    """A failure and a step."""

    failure: str
    step: str
    remains: bool
    """Whether the step is still to be done; otherwise it is the one that was tried last."""


class NewStepInputs(UnderWayInputs, frozen=True, kw_only=True):
    """A failure, and the steps that remain."""

    done: tuple[str, ...]
    remaining: tuple[str, ...]
    failure: str


ADJUSTMENT_STEP_VIABILITY: Prompt[StepViabilityInputs, Choice] = judgment_prompt(
    "adjustment_step_viability",
    "Judge whether a remaining step should still be done",
    UNDER_WAY + STEPS_SO_FAR,
)
ADJUSTMENT_ROOT_CAUSE: Prompt[RootCauseInputs, Choice] = judgment_prompt(
    "adjustment_root_cause", "Judge whether a failure is about a step", UNDER_WAY
)
ADJUSTMENT_NEW_STEP: Prompt[NewStepInputs, Choice] = judgment_prompt(
    "adjustment_new_step", "Judge whether a failure needs a new step", UNDER_WAY + STEPS_SO_FAR
)


class FinalizeInputs(AdjustmentInputs, frozen=True, kw_only=True):
    """A part with the verdicts about its remaining steps."""

    failures: tuple[str, ...]
    verdicts: tuple[str, ...]
    """What happens to each step (stays, must change, is dropped), and which new ones are wanted."""


ADJUSTMENT_FINALIZE: Prompt[FinalizeInputs, AdjustmentAnswer] = Prompt(
    name="adjustment_finalize",
    role="reasoning",
    title="Write the remaining steps as it was decided",
    system=SYSTEM,
    template=TASK + template(__file__, "adjustment_finalize"),
    answer=JsonAnswer(AdjustmentAnswer),
    max_answer_tokens=1200,
    example=(
        '{"analysis": "The quokka menu still reads the old pen, so s2 has to change and s3 is done.", "changes": '
        '["s2: reads count_quokkas now", "s3: goes, the quokka pen is exported"], "steps": [{"description": "Let the quokka menu read '
        'count_quokkas.", "files": [{"path": "quokka_zoo/menu.py", "role": "modify"}], "id": "s2", "needs": ["s1"], '
        '"symbols": ["QuokkaMenu.order"]}]}'
    ),
    narrow=lambda schema, inputs: at_most(schema, "steps", inputs.max_steps),
)


class GoalCheckInputs(UnderWayInputs, frozen=True, kw_only=True):
    """A plan before and after it was revised."""

    done: tuple[str, ...]
    """The outcomes of the steps that were tried."""
    before: tuple[str, ...]
    """The steps before the revision, one line each."""
    after: tuple[str, ...]


GOAL_CHECK: Prompt[GoalCheckInputs, Choice] = judgment_prompt(
    "goal_check", "Judge whether a revised plan keeps the goal", UNDER_WAY + STEPS_SO_FAR
)
