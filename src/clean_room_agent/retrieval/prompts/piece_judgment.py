"""The prompt `piece_judgment`: does the task change a piece of code, need it to be read, or neither?"""

from clean_room_agent.llm.answers import Choice, OneWord
from clean_room_agent.llm.prompt import SYSTEM, Prompt
from clean_room_agent.retrieval.stage import SingleInputs

CHANGE, READ, SKIP = "change", "read", "skip"
WORD_TOKENS = 4
"""Enough for each of the words."""

TEMPLATE = """\
{{ question }}

{{ heading }}

You choose code for a programmer who will do the task above. You get one piece of code.

Answer with one word:
- change: the task changes this code.
- read: this code stays as it is, but the change cannot be written without reading it.
- skip: the change can be written without this code.
{% if chosen %}

## Already chosen
{% for name in chosen %}
- {{ name | listed }}
{% endfor %}
{% endif %}

## Code to choose from
{% for other in others %}
- {{ other | listed }}
{% endfor %}

## Code
{{ option | candidate }}
Does the task change this code, does the change need it to be read, or neither? Answer change, read or skip.
"""

PIECE_JUDGMENT: Prompt[SingleInputs, Choice] = Prompt(
    name="piece_judgment",
    role="classifier",
    title="Judge whether a task changes a piece of code",
    system=SYSTEM,
    template=TEMPLATE,
    answer=OneWord((CHANGE, READ, SKIP)),
    max_answer_tokens=WORD_TOKENS,
    example="change",
)
