"""Which parts does the task have?"""

from dataclasses import dataclass

from clean_room_agent.artifacts.context import SectionTexts
from clean_room_agent.execute.prompts.answers import MetaPlanAnswer, parts_schema
from clean_room_agent.execute.prompts.texts import template
from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import KNOWN, SYSTEM, Prompt


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
    known: tuple[str, ...] = ()
    """Paths of files that there are, for the schema alone."""


EXAMPLE = (
    '{"analysis": "count_quokkas leaves out the young, and the quokka menu relies on it.", "parts": ['
    '{"description": "Let count_quokkas count the young too.", "files": ["quokka_zoo/pen.py"], '
    '"id": "quokka-count", "needs": []}, '
    '{"description": "Order two meals a day for each quokka.", "files": ["quokka_zoo/menu.py"], '
    '"id": "quokka-menu", "needs": ["quokka-count"]}], "summary": "Feed the young quokkas too."}'
)

META_PLAN: Prompt[MetaPlanInputs, MetaPlanAnswer] = Prompt(
    name="meta_plan",
    role="reasoning",
    title="Divide a task into parts",
    system=SYSTEM,
    template=KNOWN + template("meta_plan"),
    answer=JsonAnswer(MetaPlanAnswer),
    max_answer_tokens=1200,
    example=EXAMPLE,
    narrow=lambda schema, inputs: parts_schema(schema, inputs.known, inputs.max_parts),
)
