"""The yes/no prompt whether one step needs another to be done first."""

from msgspec import Struct

from clean_room_agent.execute.prompts.plans import TASK
from clean_room_agent.llm.answers import YES_NO_TOKENS, YES_OR_NO, Choice
from clean_room_agent.llm.prompt import SYSTEM, Prompt


class StepDependencyInputs(Struct, frozen=True, kw_only=True):
    """Two steps of a part."""

    task: str
    steps: tuple[str, ...]
    """All of them."""
    step: str
    """With its code."""
    other: str


TEMPLATE = (
    TASK
    + """
## All steps
{% for step in steps %}
- {{ step | draft }}
{% endfor %}

{{ heading }}

You get two steps of the work on the task above, A and B. Tests run after each step. Say whether B must be done before A.

Rules:
- Say yes if A calls or imports something that B adds, renames or changes.
- Say no if the code works after A while B is not done.
- Say no if only B uses what A changes.
- Answer with one word and nothing else: yes or no.

## Step A
{{ step | draft }}

## Step B
{{ other | draft }}

Must B be done before A? Answer yes or no.
"""
)

STEP_DEPENDENCY: Prompt[StepDependencyInputs, Choice] = Prompt(
    name="step_dependency",
    role="classifier",
    title="Judge whether a step needs another step first",
    system=SYSTEM,
    template=TEMPLATE,
    answer=YES_OR_NO,
    max_answer_tokens=YES_NO_TOKENS,
    example="yes",
)
