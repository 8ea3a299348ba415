"""The prompts of a decomposed plan, each with one question: which places a task changes and which of them form a part; which
places a part changes, and in which steps; and which part or step needs another one first.
"""

from msgspec import Struct

from clean_room_agent.artifacts.context import SectionTexts
from clean_room_agent.execute.plan_prompts import (
    TASK,
    ChangePointsAnswer,
    PartInputs,
    PlanInputs,
    StepDesignAnswer,
    SymbolTargetsAnswer,
    plan_prompt,
    points_schema,
    targets_schema,
)
from clean_room_agent.llm.answer_rules import at_most
from clean_room_agent.llm.answers import Choice
from clean_room_agent.llm.prompt import KNOWN, Prompt, yes_no_prompt


class ChangePointsInputs(PlanInputs, frozen=True, kw_only=True):
    """A task whose changes are asked for."""

    max_points: int


CHANGE_POINTS_EXAMPLE = (
    '{"analysis": "count_quokkas leaves out the young, and the quokka menu orders too few meals.", "points": ['
    '{"change": "Count the young quokkas too.", "file": "quokka_zoo/pen.py", "symbol": "count_quokkas"}, '
    '{"change": "Order two meals a day for each quokka.", "file": "quokka_zoo/menu.py", "symbol": "QuokkaMenu.order"}], '
    '"summary": "Feed the young quokkas too."}'
)

CHANGE_POINTS: Prompt[ChangePointsInputs, ChangePointsAnswer] = plan_prompt(
    name="change_points",
    title="List the places that a task changes",
    known=KNOWN,
    answer=ChangePointsAnswer,
    max_answer_tokens=1000,
    example=CHANGE_POINTS_EXAMPLE,
    narrow=lambda schema, inputs: points_schema(schema, inputs.paths, inputs.max_points),
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


SAME_PART_TEMPLATE = (
    TASK
    + """
## All changes
{% for change in changes %}
- {{ change | draft }}
{% endfor %}

{{ heading }}

You get two of the changes that the task above needs. Say whether both belong into one part of the work, or whether each is a part of its own.

Rules:
- Say yes if the code is broken or useless with only one of the two changes.
- Say yes if one changes how a function is called, and the other changes its calls.
- Say no if each change makes sense on its own and can be tested on its own.
- Answer with one word and nothing else: yes or no.

## First change
{{ first | draft }}

## Second change
{{ second | draft }}
{% if known %}

## What the code shows
{% for fact in known %}
- {{ fact | candidate }}
{% endfor %}
{% endif %}

Do these two changes belong into one part? Answer yes or no.
"""
)

SAME_PART: Prompt[SamePartInputs, Choice] = yes_no_prompt(
    name="same_part",
    title="Judge whether two changes belong together",
    template=SAME_PART_TEMPLATE,
)


class DependencyInputs(Struct, frozen=True, kw_only=True):
    """Two parts of the work on a task, or two steps of a part."""

    task: str
    drafts: tuple[str, ...]
    """All parts or steps."""
    one: str
    """With its code; it may need the other."""
    other: str


PART_DEPENDENCY_TEMPLATE = (
    TASK
    + """
## All parts
{% for draft in drafts %}
- {{ draft | draft }}
{% endfor %}

{{ heading }}

You get two parts of the work on the task above, A and B. Say whether B must be done before A.

Rules:
- Say yes if A calls or imports something that B adds, renames or changes.
- Say no if A can be done and tested while B is not done.
- Say no if only B uses what A changes.
- Answer with one word and nothing else: yes or no.

## Part A
{{ one | draft }}

## Part B
{{ other | draft }}

Must B be done before A? Answer yes or no.
"""
)

PART_DEPENDENCY: Prompt[DependencyInputs, Choice] = yes_no_prompt(
    name="part_dependency",
    title="Judge whether a part needs another part first",
    template=PART_DEPENDENCY_TEMPLATE,
)


class SymbolTargetsInputs(PartInputs, frozen=True, kw_only=True):
    """A part whose places are asked for."""

    known: tuple[str, ...]
    """The definitions that the context shows."""
    max_targets: int


SYMBOL_TARGETS_EXAMPLE = (
    '{"analysis": "count_quokkas leaves out the young; only quokka_zoo/menu.py calls it.", "targets": ['
    '{"file": "quokka_zoo/pen.py", "role": "modify", "symbol": "count_quokkas"}, '
    '{"file": "quokka_zoo/menu.py", "role": "modify", "symbol": "QuokkaMenu.order"}]}'
)

SYMBOL_TARGETS: Prompt[SymbolTargetsInputs, SymbolTargetsAnswer] = plan_prompt(
    name="symbol_targets",
    title="List the places that a part of a task changes",
    known=KNOWN,
    answer=SymbolTargetsAnswer,
    max_answer_tokens=800,
    example=SYMBOL_TARGETS_EXAMPLE,
    narrow=lambda schema, inputs: targets_schema(schema, inputs.paths, inputs.max_targets),
)


class StepDesignInputs(Struct, frozen=True, kw_only=True):
    """One part of the task with the places that it changes; texts may be empty."""

    context: SectionTexts
    """Of the files that contain these places."""
    diff: str
    """What the run has changed so far."""
    evidence: str
    task: str
    part: str
    targets: tuple[str, ...]
    """The places, as they are numbered."""
    max_steps: int
    max_lines: int
    """Of the edits of one step."""
    rejected: str
    faults: tuple[str, ...]


STEP_DESIGN_EXAMPLE = (
    '{"steps": [{"description": "Add the young to the sum in count_quokkas.", "targets": [1]}, '
    '{"description": "Order two meals a day for each quokka, not one.", "targets": [2]}], '
    '"summary": "Feed the young quokkas too."}'
)

STEP_DESIGN: Prompt[StepDesignInputs, StepDesignAnswer] = plan_prompt(
    name="step_design",
    title="Write the steps that change given places",
    known=KNOWN,
    answer=StepDesignAnswer,
    max_answer_tokens=1000,
    example=STEP_DESIGN_EXAMPLE,
    narrow=lambda schema, inputs: at_most(schema, "steps", inputs.max_steps),
)


STEP_DEPENDENCY_TEMPLATE = (
    TASK
    + """
## All steps
{% for draft in drafts %}
- {{ draft | draft }}
{% endfor %}

{{ heading }}

You get two steps of the work on the task above, A and B. Tests run after each step. Say whether B must be done before A.

Rules:
- Say yes if A calls or imports something that B adds, renames or changes.
- Say no if the code works after A while B is not done.
- Say no if only B uses what A changes.
- Answer with one word and nothing else: yes or no.

## Step A
{{ one | draft }}

## Step B
{{ other | draft }}

Must B be done before A? Answer yes or no.
"""
)

STEP_DEPENDENCY: Prompt[DependencyInputs, Choice] = yes_no_prompt(
    name="step_dependency",
    title="Judge whether a step needs another step first",
    template=STEP_DEPENDENCY_TEMPLATE,
)
