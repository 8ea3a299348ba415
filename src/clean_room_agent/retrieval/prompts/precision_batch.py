"""The prompt `precision_batch`: which pieces of code does a task change, and which must be read to write the change?"""

from pydantic import BaseModel, Field

from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import SYSTEM, Prompt
from clean_room_agent.llm.schema import Numbers, numbers_to
from clean_room_agent.retrieval.prompts.piece_judgment import CHANGE, READ
from clean_room_agent.retrieval.stage import BatchInputs


class PrecisionBatchAnswer(BaseModel):
    """Numbers of the list, from 1; what is in no list is left out."""

    change: Numbers
    read: Numbers = Field(default_factory=list)

    def numbers(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """From the label that shows most to the one that shows least."""
        return ((CHANGE, tuple(self.change)), (READ, tuple(self.read)))


TEMPLATE = """\
{{ question }}

{{ heading }}

You choose code for a programmer who will do the task above. You get a numbered list of pieces of code.

Put the number of a piece into one of two lists:
- change: the task changes this code.
- read: this code stays as it is, but the change cannot be written without reading it.

Rules:
- Leave out the numbers of all other pieces. A list may be empty.
- Answer with one JSON object and nothing else.

Example answer (the numbers of another list):
{{ example }}
{% if chosen %}

## Already chosen
{% for name in chosen %}
- {{ name | listed }}
{% endfor %}
{% endif %}

## Code
{% for option in options %}
{{ option | candidate }}
{% endfor %}
Which of these pieces does the task change, and which must be read? Answer with the JSON object.
"""

PRECISION_BATCH: Prompt[BatchInputs, PrecisionBatchAnswer] = Prompt(
    name="precision_batch",
    role="reasoning",
    title="Choose the code that a task changes, and what must be read for it",
    system=SYSTEM,
    template=TEMPLATE,
    answer=JsonAnswer(PrecisionBatchAnswer),
    max_answer_tokens=400,
    example='{"change": [71], "read": [83, 94]}',
    narrow=lambda schema, inputs: numbers_to(schema, len(inputs.options)),
)
