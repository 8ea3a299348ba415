"""The yes/no prompt whether one part of the work needs another to be done first."""

from msgspec import Struct

from clean_room_agent.execute.prompts.plans import TASK
from clean_room_agent.llm.answers import YES_NO_TOKENS, YES_OR_NO, Choice
from clean_room_agent.llm.prompt import SYSTEM, Prompt


class PartDependencyInputs(Struct, frozen=True, kw_only=True):
    """Two parts of the work on a task."""

    task: str
    parts: tuple[str, ...]
    """All of them."""
    part: str
    """With its code."""
    other: str


TEMPLATE = (
    TASK
    + """
## All parts
{% for part in parts %}
- {{ part | draft }}
{% endfor %}

{{ heading }}

You get two parts of the work on the task above, A and B. Say whether B must be done before A.

Rules:
- Say yes if A calls or imports something that B adds, renames or changes.
- Say no if A can be done and tested while B is not done.
- Say no if only B uses what A changes.
- Answer with one word and nothing else: yes or no.

## Part A
{{ part | draft }}

## Part B
{{ other | draft }}

Must B be done before A? Answer yes or no.
"""
)

PART_DEPENDENCY: Prompt[PartDependencyInputs, Choice] = Prompt(
    name="part_dependency",
    role="classifier",
    title="Judge whether a part needs another part first",
    system=SYSTEM,
    template=TEMPLATE,
    answer=YES_OR_NO,
    max_answer_tokens=YES_NO_TOKENS,
    example="yes",
)
