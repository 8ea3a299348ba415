"""Which parts does the task have?"""

from dataclasses import dataclass

from clean_room_agent.artifacts.package import SectionTexts
from clean_room_agent.execute.prompts.answers import MetaPlanAnswer
from clean_room_agent.execute.prompts.texts import PLANNER, template
from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaPlanInputs:
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


EXAMPLE = (
    '{"analysis": "Rounding happens in to_cents, and the invoice calls it too early.", "parts": ['
    '{"description": "Make to_cents round half up.", "files": ["shop/money.py"], "id": "rounding", "needs": []}, '
    '{"description": "Let the invoice round its total only once.", "files": ["shop/invoice.py"], '
    '"id": "invoice", "needs": ["rounding"]}], "summary": "Round invoice totals half up."}'
)

META_PLAN: Prompt[MetaPlanInputs, MetaPlanAnswer] = Prompt(
    name="meta_plan",
    role="reasoning",
    title="Divide a task into parts",
    system=PLANNER,
    template=template("meta_plan"),
    answer=JsonAnswer(MetaPlanAnswer),
    max_answer_tokens=1200,
    example=EXAMPLE,
)
