"""The prompt that writes the remaining steps of a part, as was decided about each of them."""

from msgspec import Struct

from clean_room_agent.artifacts.context import SectionTexts
from clean_room_agent.execute.prompts.plans import TASK, AdjustmentAnswer
from clean_room_agent.llm.answer_rules import at_most
from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import SYSTEM, Prompt, template


class FinalizeInputs(Struct, frozen=True, kw_only=True):
    """A part in progress, with the verdicts about its remaining steps; texts may be empty."""

    context: SectionTexts
    diff: str
    task: str
    part: str
    done: tuple[str, ...]
    """The outcome of each step that was tried, one text each."""
    failures: tuple[str, ...]
    remaining: str
    """The remaining steps, as JSON in the answer's shape."""
    verdicts: tuple[str, ...]
    """What happens to each step (stays, must change, is dropped), and which new ones are wanted."""
    max_steps: int
    rejected: str
    faults: tuple[str, ...]


EXAMPLE = (
    '{"analysis": "The quokka menu still reads the old pen, so s2 has to change and s3 is done.", "changes": '
    '["s2: reads count_quokkas now", "s3: goes, the quokka pen is exported"], "steps": [{"description": "Let the quokka menu read '
    'count_quokkas.", "files": [{"path": "quokka_zoo/menu.py", "role": "modify"}], "id": "s2", "needs": ["s1"], '
    '"symbols": ["QuokkaMenu.order"]}]}'
)

ADJUSTMENT_FINALIZE: Prompt[FinalizeInputs, AdjustmentAnswer] = Prompt(
    name="adjustment_finalize",
    role="reasoning",
    title="Write the remaining steps as it was decided",
    system=SYSTEM,
    template=TASK + template(__file__, "adjustment_finalize"),
    answer=JsonAnswer(AdjustmentAnswer),
    max_answer_tokens=1200,
    example=EXAMPLE,
    narrow=lambda schema, inputs: at_most(schema, "steps", inputs.max_steps),
)
