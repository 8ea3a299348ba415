"""The yes/no prompt whether a revised plan still does all that the user asked for."""

from msgspec import Struct

from clean_room_agent.execute.prompts.plans import STEPS_SO_FAR, UNDER_WAY
from clean_room_agent.llm.answers import YES_NO_TOKENS, YES_OR_NO, Choice
from clean_room_agent.llm.prompt import SYSTEM, Prompt


class GoalCheckInputs(Struct, frozen=True, kw_only=True):
    """A plan before and after it was revised; texts may be empty."""

    task: str
    """The user's words."""
    part: str
    """The part of it that the plan is for."""
    diff: str
    """What the run has changed so far."""
    done: tuple[str, ...]
    """The outcomes of the steps that were tried."""
    before: tuple[str, ...]
    """The steps before the revision, one line each."""
    after: tuple[str, ...]


TEMPLATE = (
    UNDER_WAY
    + STEPS_SO_FAR
    + """\

{{ heading }}

A plan for the task above was revised. You get the steps before and the revised steps. Say whether the work still does all that the user asked for.

Rules:
- How it is done may change. What the user gets may not become less.
- Say yes if the revised steps do the same in another way.
- Say yes if the steps that are missing are already done. A step that failed was undone.
- Say no if something that the user asked for is neither done nor in the revised steps.
- Other parts of the task have plans of their own: judge the part under way.
- Answer with one word and nothing else: yes or no.

## Steps before
{% for step in before %}
{{ step | step }}
{% endfor %}

## Revised steps
{% for step in after %}
{{ step | draft }}
{% else %}
(none)
{% endfor %}

Is all that the user asked for still done or in the revised steps? Answer yes or no.
"""
)

GOAL_CHECK: Prompt[GoalCheckInputs, Choice] = Prompt(
    name="goal_check",
    role="classifier",
    title="Judge whether a revised plan keeps the goal",
    system=SYSTEM,
    template=TEMPLATE,
    answer=YES_OR_NO,
    max_answer_tokens=YES_NO_TOKENS,
    example="yes",
)
