"""The prompts that plan in one call each: the parts of a task, the steps of a part, and what remains of a part after a step."""

from msgspec import Struct

from clean_room_agent.artifacts.context import SectionTexts
from clean_room_agent.execute.prompts.answers import (
    AdjustmentAnswer,
    MetaPlanAnswer,
    PartPlanAnswer,
    parts_schema,
    steps_schema,
)
from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import CONTEXT, KNOWN, SYSTEM, Prompt, template
from clean_room_agent.llm.schema import at_most

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


class MetaPlanInputs(Struct, frozen=True, kw_only=True):
    """The task with the code that it is about; texts may be empty."""

    context: SectionTexts
    others: tuple[str, ...]
    """Paths of files of which the context shows nothing."""
    evidence: str
    max_parts: int
    task: str
    rejected: str
    """An earlier plan that had faults."""
    faults: tuple[str, ...]
    known: tuple[str, ...] = ()
    """Paths of existing files, used only for the schema."""


META_PLAN: Prompt[MetaPlanInputs, MetaPlanAnswer] = Prompt(
    name="meta_plan",
    role="reasoning",
    title="Divide a task into parts",
    system=SYSTEM,
    template=KNOWN + template(__file__, "meta_plan"),
    answer=JsonAnswer(MetaPlanAnswer),
    max_answer_tokens=1200,
    example=META_PLAN_EXAMPLE,
    narrow=lambda schema, inputs: parts_schema(schema, inputs.known, inputs.max_parts),
)


class PartPlanInputs(Struct, frozen=True, kw_only=True):
    """One part of the task with the code that it is about; texts may be empty."""

    context: SectionTexts
    others: tuple[str, ...]
    """Paths of files of which the context shows nothing."""
    diff: str
    """What the run has changed so far."""
    evidence: str
    task: str
    goal: str
    """The whole plan in a sentence."""
    part: str
    files: tuple[str, ...]
    """Named by the part."""
    max_steps: int
    max_lines: int
    """Of the edits of one step."""
    rejected: str
    faults: tuple[str, ...]
    known: tuple[str, ...] = ()
    """Paths of existing files, used only for the schema."""


PART_PLAN: Prompt[PartPlanInputs, PartPlanAnswer] = Prompt(
    name="part_plan",
    role="reasoning",
    title="Divide a part of a task into steps",
    system=SYSTEM,
    template=KNOWN + template(__file__, "part_plan"),
    answer=JsonAnswer(PartPlanAnswer),
    max_answer_tokens=1200,
    example=PART_PLAN_EXAMPLE,
    narrow=lambda schema, inputs: steps_schema(schema, inputs.known, inputs.max_steps),
)


class AdjustmentInputs(Struct, frozen=True, kw_only=True):
    """A part under way; texts may be empty."""

    context: SectionTexts
    diff: str
    task: str
    part: str
    done: tuple[str, ...]
    """The outcome of each step that was tried, one text each."""
    remaining: str
    """The remaining steps, as JSON in the answer's shape."""
    max_steps: int
    rejected: str
    faults: tuple[str, ...]


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
