"""The prompts of a decomposed adjustment, each with one question about the steps that remain after a failure."""

from clean_room_agent.execute.plan_prompts import (
    STEPS_SO_FAR,
    TASK,
    UNDER_WAY,
    AdjustmentAnswer,
    AdjustmentInputs,
    UnderWayInputs,
    plan_prompt,
)
from clean_room_agent.llm.answer_rules import at_most
from clean_room_agent.llm.answers import Choice
from clean_room_agent.llm.prompt import Prompt, yes_no_prompt


class StepViabilityInputs(UnderWayInputs, frozen=True, kw_only=True):
    """A plan in progress in which something failed, and one of its remaining steps."""

    done: tuple[str, ...]
    """The outcomes of the steps that were tried."""
    failures: tuple[str, ...]
    step: str


ADJUSTMENT_STEP_VIABILITY_TEMPLATE = (
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

ADJUSTMENT_STEP_VIABILITY: Prompt[StepViabilityInputs, Choice] = yes_no_prompt(
    name="adjustment_step_viability",
    title="Judge whether a remaining step should still be done",
    template=ADJUSTMENT_STEP_VIABILITY_TEMPLATE,
)


class RootCauseInputs(UnderWayInputs, frozen=True, kw_only=True):
    """A failure and a step."""

    failure: str
    step: str
    remains: bool
    """Whether the step is still to be done; otherwise it is the one that was tried last."""


ADJUSTMENT_ROOT_CAUSE_TEMPLATE = (
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

ADJUSTMENT_ROOT_CAUSE: Prompt[RootCauseInputs, Choice] = yes_no_prompt(
    name="adjustment_root_cause",
    title="Judge whether a failure is about a step",
    template=ADJUSTMENT_ROOT_CAUSE_TEMPLATE,
)


class NewStepInputs(UnderWayInputs, frozen=True, kw_only=True):
    """A failure, and the steps that remain."""

    done: tuple[str, ...]
    remaining: tuple[str, ...]
    failure: str


ADJUSTMENT_NEW_STEP_TEMPLATE = (
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

ADJUSTMENT_NEW_STEP: Prompt[NewStepInputs, Choice] = yes_no_prompt(
    name="adjustment_new_step",
    title="Judge whether a failure needs a new step",
    template=ADJUSTMENT_NEW_STEP_TEMPLATE,
)


class FinalizeInputs(AdjustmentInputs, frozen=True, kw_only=True):
    """A plan with the verdicts about its remaining steps; texts may be empty."""

    failures: tuple[str, ...]
    verdicts: tuple[str, ...]
    """What happens to each step (stays, must change, is dropped), and which new ones are wanted."""


ADJUSTMENT_FINALIZE_EXAMPLE = (
    '{"analysis": "The quokka menu still reads the old pen, so s2 has to change and s3 is done.", "changes": '
    '["s2: reads count_quokkas now", "s3: goes, the quokka pen is exported"], "steps": [{"description": "Let the quokka menu read '
    'count_quokkas.", "files": [{"path": "quokka_zoo/menu.py", "role": "modify"}], "id": "s2", "needs": ["s1"], '
    '"symbols": ["QuokkaMenu.order"]}]}'
)

ADJUSTMENT_FINALIZE: Prompt[FinalizeInputs, AdjustmentAnswer] = plan_prompt(
    name="adjustment_finalize",
    title="Write the remaining steps as it was decided",
    known=TASK,
    answer=AdjustmentAnswer,
    max_answer_tokens=1200,
    example=ADJUSTMENT_FINALIZE_EXAMPLE,
    narrow=lambda schema, inputs: at_most(schema, "steps", inputs.max_steps),
)
