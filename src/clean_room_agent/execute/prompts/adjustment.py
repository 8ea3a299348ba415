"""Do the remaining steps still fit what happened?"""

from dataclasses import dataclass

from clean_room_agent.artifacts.context import SectionTexts
from clean_room_agent.execute.prompts.answers import AdjustmentAnswer
from clean_room_agent.execute.prompts.texts import TASK, template
from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import SYSTEM, Prompt
from clean_room_agent.llm.schema import at_most


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustmentInputs:
    """A part under way; texts may be empty."""

    context: SectionTexts
    diff: str
    task: str
    part: str
    done: tuple[str, ...]
    """What became of each step that was tried, one text each."""
    remaining: str
    """The remaining steps, as JSON in the answer's shape."""
    max_steps: int
    rejected: str
    faults: tuple[str, ...]


EXAMPLE = (
    '{"analysis": "s1 already changed the quokka menu, so s2 only has the export left.", "changes": '
    '["s2: only the export of count_quokkas is left"], "steps": [{"description": "Export count_quokkas from the '
    'package.", "files": [{"path": "quokka_zoo/__init__.py", "role": "modify"}], "id": "s2", "needs": ["s1"], '
    '"symbols": ["count_quokkas"]}]}'
)

ADJUSTMENT: Prompt[AdjustmentInputs, AdjustmentAnswer] = Prompt(
    name="adjustment",
    role="reasoning",
    title="Revise the remaining steps of a plan",
    system=SYSTEM,
    template=TASK + template("adjustment"),
    answer=JsonAnswer(AdjustmentAnswer),
    max_answer_tokens=1200,
    example=EXAMPLE,
    narrow=lambda schema, inputs: at_most(schema, "steps", inputs.max_steps),
)
