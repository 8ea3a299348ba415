"""The prompt for the steps that change the given places of a part."""

from msgspec import Struct

from clean_room_agent.artifacts.context import SectionTexts
from clean_room_agent.execute.prompts.plans import StepDesignAnswer
from clean_room_agent.llm.answer_rules import at_most
from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import KNOWN, SYSTEM, Prompt, template


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


EXAMPLE = (
    '{"steps": [{"description": "Add the young to the sum in count_quokkas.", "targets": [1]}, '
    '{"description": "Order two meals a day for each quokka, not one.", "targets": [2]}], '
    '"summary": "Feed the young quokkas too."}'
)

STEP_DESIGN: Prompt[StepDesignInputs, StepDesignAnswer] = Prompt(
    name="step_design",
    role="reasoning",
    title="Write the steps that change given places",
    system=SYSTEM,
    template=KNOWN + template(__file__, "step_design"),
    answer=JsonAnswer(StepDesignAnswer),
    max_answer_tokens=1000,
    example=EXAMPLE,
    narrow=lambda schema, inputs: at_most(schema, "steps", inputs.max_steps),
)
