"""The prompt `scope_batch`: which files of a list matter for the task?"""

from pydantic import BaseModel

from clean_room_agent.llm.answers import JsonAnswer
from clean_room_agent.llm.prompt import SYSTEM, Prompt
from clean_room_agent.llm.schema import Numbers, numbers_to
from clean_room_agent.retrieval.stage import BatchInputs

RELEVANT = "relevant"


class ScopeBatchAnswer(BaseModel):
    """Numbers of the list, from 1."""

    relevant: Numbers

    def numbers(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The one label."""
        return ((RELEVANT, tuple(self.relevant)),)


TEMPLATE = """\
{{ question }}

{{ heading }}

You choose files for a programmer who will do the task above. You get a numbered list of files of the repository.

Rules:
- Choose a file if the task changes it.
- Choose a file if the change cannot be written without reading it.
- Leave a file out if it only has a similar name or topic.
- Each file is shown with the lines that are nearest to the task, each after its number.
- Answer with one JSON object and nothing else: the numbers of the chosen files. The list may be empty.

Example answer (the numbers of another list):
{{ example }}
{% if chosen %}

## Already chosen
{% for name in chosen %}
- {{ name | listed }}
{% endfor %}
{% endif %}

## Files
{% for option in options %}
{{ option | candidate }}
{% endfor %}
Which of these files matter for the task? Answer with the JSON object.
"""

SCOPE_BATCH: Prompt[BatchInputs, ScopeBatchAnswer] = Prompt(
    name="scope_batch",
    role="reasoning",
    title="Choose the files that matter for a task",
    system=SYSTEM,
    template=TEMPLATE,
    answer=JsonAnswer(ScopeBatchAnswer),
    max_answer_tokens=256,
    example='{"relevant": [71, 94]}',
    narrow=lambda schema, inputs: numbers_to(schema, len(inputs.options)),
)
