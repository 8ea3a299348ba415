"""The prompts of training: which prompt is worth an adapter, what that should gain, and which answers are good examples."""

from typing import Annotated

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field

from clean_room_agent.llm.answer_rules import NAME_CHARS, SENTENCES_CHARS, JsonSchema, bounds
from clean_room_agent.llm.answers import YES_NO_TOKENS, YES_OR_NO, Choice, JsonAnswer
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.retrieval.stage import SingleInputs

SYSTEM = (
    "You are a precise assistant for engineers who train models. You answer in the form that is asked for, "
    "with nothing around it."
)


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


TRAIN_PLAN_TEMPLATE = """\
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
    system=SYSTEM,
    template=TRAIN_PLAN_TEMPLATE,
    answer=JsonAnswer(TrainPlanAnswer),
    max_answer_tokens=400,
    example='{"reason": "Most failed tasks lost a quokka that was judged out.", "target": "quokka_judgment", '
    '"expected": 0.9, "epochs": 2}',
    narrow=_of_candidates,
)


TARGET_JUDGMENT_TEMPLATE = """\
{{ question | figures }}

{{ heading }}

A coding agent asks small language models narrow questions. You decide whether a model should be trained for one kind of \
question. You get figures from the record of its runs.

Rules:
- Say yes if many failed tasks are charged to the question, and fewer would fail if its answers were better.
- Say no if hardly a task would be won even with perfect answers.
- Say no if the figures show that other stages lose the same tasks anyway.
- Answer with one word: yes or no.

## Questions that may be trained
{% for other in others %}
- {{ other | line | candidate }}
{% endfor %}

## Figures
{{ option | candidate }}
Is it worth training a model for this question? Answer yes or no.
"""

TARGET_JUDGMENT: Prompt[SingleInputs, Choice] = Prompt(
    name="target_judgment",
    role="reasoning",
    title="Judge whether a prompt is worth an adapter",
    system=SYSTEM,
    template=TARGET_JUDGMENT_TEMPLATE,
    answer=YES_OR_NO,
    max_answer_tokens=YES_NO_TOKENS,
    example="yes",
)


CURATE_DATA_TEMPLATE = """\
{{ question | figures }}

{{ heading }}

A coding agent asked a model a narrow question, and the task was solved afterwards. You decide whether the answer is a good \
example to train a model with. It let in something that was not changed in the end.

Rules:
- Say yes if what it let in has to be read to write the change.
- Say no if what it let in only has a similar name or topic.
- Say no if you cannot tell.
- Answer with one word: yes or no.

## Example
{{ option | candidate }}
Is the answer a good example? Answer yes or no.
"""

CURATE_DATA: Prompt[SingleInputs, Choice] = Prompt(
    name="curate_data",
    role="reasoning",
    title="Judge whether an answer is a good example",
    system=SYSTEM,
    template=CURATE_DATA_TEMPLATE,
    answer=YES_OR_NO,
    max_answer_tokens=YES_NO_TOKENS,
    example="no",
)
