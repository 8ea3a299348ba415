"""The yes/no prompt whether two changes belong in the same part of the work."""

from msgspec import Struct

from clean_room_agent.execute.prompts.plans import TASK
from clean_room_agent.llm.answers import YES_NO_TOKENS, YES_OR_NO, Choice
from clean_room_agent.llm.prompt import SYSTEM, Prompt


class SamePartInputs(Struct, frozen=True, kw_only=True):
    """Two of the changes that a task needs."""

    task: str
    changes: tuple[str, ...]
    """All of them."""
    first: str
    """With its code."""
    second: str
    known: tuple[str, ...]
    """What the code shows about the two."""


TEMPLATE = (
    TASK
    + """
## All changes
{% for change in changes %}
- {{ change | draft }}
{% endfor %}

{{ heading }}

You get two of the changes that the task above needs. Say whether both belong into one part of the work, or whether each is a part of its own.

Rules:
- Say yes if the code is broken or useless with only one of the two changes.
- Say yes if one changes how a function is called, and the other changes its calls.
- Say no if each change makes sense on its own and can be tested on its own.
- Answer with one word and nothing else: yes or no.

## First change
{{ first | draft }}

## Second change
{{ second | draft }}
{% if known %}

## What the code shows
{% for fact in known %}
- {{ fact | candidate }}
{% endfor %}
{% endif %}

Do these two changes belong into one part? Answer yes or no.
"""
)

SAME_PART: Prompt[SamePartInputs, Choice] = Prompt(
    name="same_part",
    role="classifier",
    title="Judge whether two changes belong together",
    system=SYSTEM,
    template=TEMPLATE,
    answer=YES_OR_NO,
    max_answer_tokens=YES_NO_TOKENS,
    example="yes",
)
