"""The prompt `refilter`: which of the code to be changed is needed most, when it does not all fit?"""

from pydantic import BaseModel

from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import SYSTEM, Prompt
from clean_room_agent.llm.schema import Numbers, numbers_to
from clean_room_agent.retrieval.stage import BatchInputs

KEEP = "keep"


class RefilterAnswer(BaseModel):
    """Numbers of the list, from 1."""

    keep: Numbers

    def numbers(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The one label."""
        return ((KEEP, tuple(self.keep)),)


TEMPLATE = """\
{{ question }}

{{ heading }}

A programmer will do the task above, but not all of the chosen code fits into the prompt. Some of it has to be left out.

Rules:
- Keep a piece if the task changes it.
- Leave a piece out if it is only useful to know.
- Each piece has its size in tokens. What you keep must not be larger than what is named below the list.
- Answer with one JSON object and nothing else: the numbers of the pieces to keep.

Example answer (the numbers of another list):
{{ example }}

## Code
{% for option in options %}
{{ option | candidate }}
{% endfor %}

{{ remark | figures }}
Which of these pieces must stay? Answer with the JSON object.
"""

REFILTER: Prompt[BatchInputs, RefilterAnswer] = Prompt(
    name="refilter",
    role="reasoning",
    title="Keep the code that a task needs most",
    system=SYSTEM,
    template=TEMPLATE,
    answer=JsonAnswer(RefilterAnswer),
    max_answer_tokens=256,
    example='{"keep": [71, 94]}',
    narrow=lambda schema, inputs: numbers_to(schema, len(inputs.options)),
)
