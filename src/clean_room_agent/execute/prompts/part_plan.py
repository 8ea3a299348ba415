"""Which steps does a part have?"""

from dataclasses import dataclass

from clean_room_agent.artifacts.package import SectionTexts
from clean_room_agent.execute.prompts.answers import PartPlanAnswer
from clean_room_agent.execute.prompts.texts import PLANNER, template
from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import Prompt


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


EXAMPLE = (
    '{"analysis": "to_cents cuts off instead of rounding; only invoice.py calls it.", "steps": ['
    '{"description": "Round half up in to_cents, with Decimal.quantize.", '
    '"files": [{"path": "shop/money.py", "role": "modify"}], "id": "s1", "needs": [], "symbols": ["to_cents"]}, '
    '{"description": "Call to_cents on the total only, not on each line.", '
    '"files": [{"path": "shop/invoice.py", "role": "modify"}], "id": "s2", "needs": ["s1"], '
    '"symbols": ["Invoice.total"]}], "summary": "Round invoice totals half up."}'
)

PART_PLAN: Prompt[PartPlanInputs, PartPlanAnswer] = Prompt(
    name="part_plan",
    role="reasoning",
    title="Divide a part of a task into steps",
    system=PLANNER,
    template=template("part_plan"),
    answer=JsonAnswer(PartPlanAnswer),
    max_answer_tokens=1200,
    example=EXAMPLE,
)
