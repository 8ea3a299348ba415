"""The yes/no prompt whether a failure that no step caused needs a new step."""

from msgspec import Struct

from clean_room_agent.execute.prompts.plans import STEPS_SO_FAR, UNDER_WAY
from clean_room_agent.llm.answers import YES_NO_TOKENS, YES_OR_NO, Choice
from clean_room_agent.llm.prompt import SYSTEM, Prompt


class NewStepInputs(Struct, frozen=True, kw_only=True):
    """A failure, and the steps that remain."""

    task: str
    part: str
    diff: str
    """What the run has changed so far; may be empty."""
    done: tuple[str, ...]
    remaining: tuple[str, ...]
    failure: str


TEMPLATE = (
    UNDER_WAY
    + STEPS_SO_FAR
    + """\

{{ heading }}

Something failed while a plan for the task above was followed, and no step of the plan is about it. Say whether the plan needs one more step for it.

Rules:
- A step that failed was undone: the code is as it was before it.
- Say yes if the part cannot be finished before somebody changes the code for this failure.
- Say no if a step that remains does it.
- Say no if the failure has nothing to do with the task, or goes away by itself.
- Answer with one word and nothing else: yes or no.

## Remaining steps
{% for line in remaining %}
{{ line | step }}
{% else %}
(none)
{% endfor %}

## What failed
{{ failure | failure }}

Does the plan need a new step for this failure? Answer yes or no.
"""
)

ADJUSTMENT_NEW_STEP: Prompt[NewStepInputs, Choice] = Prompt(
    name="adjustment_new_step",
    role="classifier",
    title="Judge whether a failure needs a new step",
    system=SYSTEM,
    template=TEMPLATE,
    answer=YES_OR_NO,
    max_answer_tokens=YES_NO_TOKENS,
    example="yes",
)
