"""The prompt `train_plan`: which prompt should be trained, and what should that gain?"""

from typing import Annotated

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field

from clean_room_agent.llm.answer_rules import NAME_CHARS, SENTENCES_CHARS, JsonSchema, bounds
from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import Prompt


class TrainPlanAnswer(BaseModel):
    """The plan's choices; all else follows by rule."""

    model_config = ConfigDict(extra="ignore")

    reason: Annotated[str, bounds(maxLength=SENTENCES_CHARS)]
    target: Annotated[str, bounds(maxLength=NAME_CHARS)]
    expected: float = Field(ge=0, le=1)
    epochs: float = Field(gt=0, le=20)


class TrainPlanInputs(Struct, frozen=True, kw_only=True):
    """The candidates with their figures."""

    candidates: str
    """Framed."""
    names: tuple[str, ...]
    tasks: int
    """Failed and solved ones whose accepted change is known."""
    rejected: str
    """An earlier plan that had faults; "" for the first."""
    faults: tuple[str, ...]


TEMPLATE = """\
{{ heading }}

A coding agent asks small language models narrow questions. You plan the training of an adapter for one kind of question. \
You get the figures of each kind that may be trained.

Rules:
- Choose the kind whose better answers would win the most tasks.
- `expected` is the share of all tasks (0 to 1) that get past this question after training. Stay below what perfect answers \
would win.
- `epochs` is 1 to 4: fewer where there are many examples.
- Answer with one JSON object and nothing else.

Example answer:
{{ example }}

## Questions that may be trained
{% for name in names %}
- {{ name | candidate }}
{% endfor %}

## Figures of {{ tasks }} tasks
{{ candidates | figures }}
{% if faults %}

## An earlier plan was refused
{{ rejected | refused }}
{% for fault in faults %}
- {{ fault | refused }}
{% endfor %}
{% endif %}

Which question is to be trained? Answer with the JSON object.
"""


def _of_candidates(schema: JsonSchema, inputs: TrainPlanInputs) -> JsonSchema:
    """The schema with the candidates alone as targets."""
    properties = {**schema["properties"], "target": {"type": "string", "enum": list(inputs.names)}}
    return {**schema, "properties": properties}


TRAIN_PLAN: Prompt[TrainPlanInputs, TrainPlanAnswer] = Prompt(
    name="train_plan",
    role="reasoning",
    title="Plan the training of an adapter",
    system="You are a precise assistant for engineers who train models. You answer in the form that is asked for, "
    "with nothing around it.",
    template=TEMPLATE,
    answer=JsonAnswer(TrainPlanAnswer),
    max_answer_tokens=400,
    example='{"reason": "Most failed tasks lost a quokka that was judged out.", "target": "quokka_judgment", '
    '"expected": 0.9, "epochs": 2}',
    narrow=_of_candidates,
)
