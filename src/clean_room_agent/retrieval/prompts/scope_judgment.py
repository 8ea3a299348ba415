"""The prompt `scope_judgment`: does one file matter for the task?"""

from clean_room_agent.llm.answers import YES_NO_TOKENS, YES_OR_NO, Choice
from clean_room_agent.llm.prompt import SYSTEM, Prompt
from clean_room_agent.retrieval.stage import SingleInputs

TEMPLATE = """\
{{ question }}

{{ heading }}

You choose files for a programmer who will do the task above. You get one file of the repository.

Rules:
- Say yes if the task changes the file.
- Say yes if the change cannot be written without reading the file.
- Say no if the file only has a similar name or topic.
- You see the lines of the file that are nearest to the task, each after its number.
- Answer with one word: yes or no.
{% if chosen %}

## Already chosen
{% for name in chosen %}
- {{ name | listed }}
{% endfor %}
{% endif %}

## Files to choose from
{% for other in others %}
- {{ other | listed }}
{% endfor %}

## File
{{ option | candidate }}
Does this file matter for the task? Answer yes or no.
"""

SCOPE_JUDGMENT: Prompt[SingleInputs, Choice] = Prompt(
    name="scope_judgment",
    role="classifier",
    title="Judge whether a file matters for a task",
    system=SYSTEM,
    template=TEMPLATE,
    answer=YES_OR_NO,
    max_answer_tokens=YES_NO_TOKENS,
    example="yes",
)
