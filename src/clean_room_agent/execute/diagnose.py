"""Asks a model why the attempts at a step failed, and what to do about it: the prompt and the call."""

from typing import Annotated, Literal

from msgspec import Struct
from pydantic import BaseModel, BeforeValidator, ConfigDict

from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.artifacts.outcomes import DoctorDecision
from clean_room_agent.artifacts.plans import PlanStep
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.edits.parse import render_edits
from clean_room_agent.execute.plan_prompts import TASK, Sentence, Sentences
from clean_room_agent.llm.answer_rules import bounds
from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.prompt import Prompt, template

Diagnosed = Literal[
    "syntax", "import", "name", "logic", "patch", "wrong_tech_stack", "schema_mismatch", "api_contract_wrong"
]
SURE = 100


class DoctorInputs(Struct, frozen=True, kw_only=True):
    """A step with the outcomes of its attempts; texts may be empty."""

    task: str
    step: str
    targets: tuple[str, ...]
    """Like "modify src/a.py"."""
    attempts: tuple[str, ...]
    """Oldest first: outcome and what failed, in a few lines each."""
    edits: str
    """Of the newest attempt, in the edit format."""


def _lowercase(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _as_percent(value: object) -> object:
    """Turn a share (0 to 1) into a percentage."""
    return round(value * SURE) if isinstance(value, float) and 0 <= value <= 1 else value


class DoctorAnswer(BaseModel):
    """A diagnosis."""

    model_config = ConfigDict(frozen=True)

    analysis: Sentences
    category: Annotated[Diagnosed, BeforeValidator(_lowercase)]
    confidence: Annotated[int, BeforeValidator(_as_percent), bounds(minimum=0, maximum=SURE)]
    decision: Annotated[DoctorDecision, BeforeValidator(_lowercase)]
    hint: Sentence = ""


DOCTOR: Prompt[DoctorInputs, DoctorAnswer] = Prompt(
    name="doctor",
    role="reasoning",
    title="Say why a step fails",
    system=(
        "You are a senior programmer who finds out why changes to a code base fail. You never write code. "
        "You answer with one JSON object and nothing else."
    ),
    template=TASK + template(__file__, "doctor"),
    answer=JsonAnswer(DoctorAnswer),
    max_answer_tokens=400,
    example=(
        '{"analysis": "Both attempts call feed_quokka with one argument, and it takes two.", "category": "logic", '
        '"confidence": 80, "decision": "retry_with_fix", "hint": "Pass the quokka and its meal to feed_quokka."}'
    ),
)


def diagnose(
    models: ModelClient,
    step: PlanStep,
    *,
    task: str,
    attempts: tuple[str, ...],
    edits: tuple[PatchEdit, ...],
    pass_id: str,
    tag: str,
) -> DoctorAnswer | None:
    """Ask the model `tag` ("": the reasoning model) for a diagnosis; None if it cannot be read."""
    targets = tuple(f"{target.role} {target.path}" for target in step.target_files)
    text = render_edits(edits).rstrip("\n")
    for shown in (text, ""):
        inputs = DoctorInputs(
            task=task, step=step.description, targets=targets, attempts=attempts, edits=shown
        )
        try:
            return models.ask(DOCTOR, inputs, pass_id=pass_id, tag=tag).value
        except WindowExceeded:
            if not shown:
                raise
    return None
