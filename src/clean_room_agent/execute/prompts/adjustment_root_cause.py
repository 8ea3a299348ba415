"""The yes/no prompt whether a failure is about a step: the one that was tried, or one that remains."""

from msgspec import Struct

from clean_room_agent.execute.prompts.plans import UNDER_WAY
from clean_room_agent.llm.answers import YES_NO_TOKENS, YES_OR_NO, Choice
from clean_room_agent.llm.prompt import SYSTEM, Prompt


class RootCauseInputs(Struct, frozen=True, kw_only=True):
    """A failure and a step."""

    task: str
    part: str
    diff: str
    """What the run has changed so far; may be empty."""
    failure: str
    step: str
    remains: bool
    """Whether the step is still to be done; otherwise it is the one that was tried last."""


TEMPLATE = (
    UNDER_WAY
    + """\

## What failed
{{ failure | failure }}

{{ heading }}

A step of a plan for the task above failed. You get the failure and one step of the plan. Say whether the failure is about this step.

Rules:
- The step that failed was undone: the code is as it was before it.
- Of the step that was tried: say yes if what it tried to change caused the failure, no if the cause lies elsewhere.
- Of a step that remains: say yes if it has to be done in another way because of the failure, no if it can stay as it is.
- Answer with one word and nothing else: yes or no.
{% if remains %}

## The remaining step
{{ step | step }}

Must this step change because of the failure? Answer yes or no.
{% else %}

## The step that was tried
{{ step | step }}

Did this step cause the failure? Answer yes or no.
{% endif %}
"""
)

ADJUSTMENT_ROOT_CAUSE: Prompt[RootCauseInputs, Choice] = Prompt(
    name="adjustment_root_cause",
    role="classifier",
    title="Judge whether a failure is about a step",
    system=SYSTEM,
    template=TEMPLATE,
    answer=YES_OR_NO,
    max_answer_tokens=YES_NO_TOKENS,
    example="yes",
)
