"""The yes/no prompt whether a remaining step should still be done."""

from msgspec import Struct

from clean_room_agent.execute.prompts.plans import STEPS_SO_FAR, UNDER_WAY
from clean_room_agent.llm.answers import YES_NO_TOKENS, YES_OR_NO, Choice
from clean_room_agent.llm.prompt import SYSTEM, Prompt


class StepViabilityInputs(Struct, frozen=True, kw_only=True):
    """A plan in progress in which something failed, and one of its remaining steps."""

    task: str
    part: str
    diff: str
    """What the run has changed so far; may be empty."""
    done: tuple[str, ...]
    """The outcomes of the steps that were tried."""
    failures: tuple[str, ...]
    step: str


TEMPLATE = (
    UNDER_WAY
    + STEPS_SO_FAR
    + """\

## What failed
{% for failure in failures %}
{{ failure | failure }}
{% endfor %}

{{ heading }}

A plan for the task above is under way, and something failed. You get one of the steps that remain. Say whether this step should still be done.

Rules:
- A step that failed was undone: the code is as it was before it.
- Say yes if the task still needs what the step does, also if the step has to change a little.
- Say no if what the step does is already done.
- Say no if the step makes no sense any more after what happened.
- Answer with one word and nothing else: yes or no.

## The remaining step
{{ step | step }}

Should this step still be done? Answer yes or no.
"""
)

ADJUSTMENT_STEP_VIABILITY: Prompt[StepViabilityInputs, Choice] = Prompt(
    name="adjustment_step_viability",
    role="classifier",
    title="Judge whether a remaining step should still be done",
    system=SYSTEM,
    template=TEMPLATE,
    answer=YES_OR_NO,
    max_answer_tokens=YES_NO_TOKENS,
    example="yes",
)
