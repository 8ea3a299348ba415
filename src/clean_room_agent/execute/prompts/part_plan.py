"""Which steps does a part have?"""

from dataclasses import dataclass

from clean_room_agent.artifacts.context import SectionTexts
from clean_room_agent.execute.prompts.answers import PartPlanAnswer, steps_schema
from clean_room_agent.execute.prompts.texts import template
from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import KNOWN, SYSTEM, Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class PartPlanInputs:
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
    """Paths of files that there are, for the schema alone."""


EXAMPLE = (
    '{"analysis": "count_quokkas leaves out the young; only quokka_zoo/menu.py calls it.", "steps": ['
    '{"description": "Add the young to the sum in count_quokkas.", '
    '"files": [{"path": "quokka_zoo/pen.py", "role": "modify"}], "id": "s1", "needs": [], '
    '"symbols": ["count_quokkas"]}, '
    '{"description": "Order two meals a day for each quokka, not one.", '
    '"files": [{"path": "quokka_zoo/menu.py", "role": "modify"}], "id": "s2", "needs": ["s1"], '
    '"symbols": ["QuokkaMenu.order"]}], "summary": "Feed the young quokkas too."}'
)

PART_PLAN: Prompt[PartPlanInputs, PartPlanAnswer] = Prompt(
    name="part_plan",
    role="reasoning",
    title="Divide a part of a task into steps",
    system=SYSTEM,
    template=KNOWN + template("part_plan"),
    answer=JsonAnswer(PartPlanAnswer),
    max_answer_tokens=1200,
    example=EXAMPLE,
    narrow=lambda schema, inputs: steps_schema(schema, inputs.known, inputs.max_steps),
)
