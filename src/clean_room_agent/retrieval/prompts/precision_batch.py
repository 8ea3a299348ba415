"""How much of each symbol does the programmer need to see?"""

from pydantic import BaseModel, Field

from clean_room_agent.artifacts.package import Detail
from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.retrieval.stage import BatchInputs

DETAILS: tuple[Detail, ...] = ("primary", "supporting", "type_context")


class PrecisionBatchAnswer(BaseModel):
    """Numbers of the list, from 1; what is in no list is left out."""

    primary: list[int]
    supporting: list[int] = Field(default_factory=list)
    type_context: list[int] = Field(default_factory=list)

    def numbers(self) -> tuple[tuple[Detail, tuple[int, ...]], ...]:
        """From the label that shows most to the one that shows least."""
        return (
            ("primary", tuple(self.primary)),
            ("supporting", tuple(self.supporting)),
            ("type_context", tuple(self.type_context)),
        )


TEMPLATE = """\
You choose code for a programmer who will do a task. You get the task and a numbered list of pieces of code.

Put the number of a piece into one of three lists:
- primary: this code must be changed, or its every line must be read to write the change.
- supporting: the change calls it or is called by it; its signature and description are enough.
- type_context: only its name and signature are of use.

Rules:
- Leave out the numbers of pieces that the task does not need.
- If you think that a piece may have to be changed, put it into primary.
- Answer with one JSON object and nothing else.

Example answer:
{{ example }}

{{ question }}

## Code
{% for option in options %}
{{ loop.index }}. {{ option }}
{% endfor %}

Which of these pieces are primary, supporting, or type_context? Answer with the JSON object.
"""

PRECISION_BATCH: Prompt[BatchInputs, PrecisionBatchAnswer] = Prompt(
    name="precision_batch",
    role="reasoning",
    title="Choose the code that a task needs, and how much of it",
    system="You are a precise assistant for programmers. You answer in the form that is asked for, with nothing around it.",
    template=TEMPLATE,
    answer=JsonAnswer(PrecisionBatchAnswer),
    max_answer_tokens=400,
    example='{"primary": [2], "supporting": [1, 5], "type_context": [7]}',
)
