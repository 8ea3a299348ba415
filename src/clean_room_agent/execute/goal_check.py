"""Asks a model whether a revised plan still does what the user asked for, before it is followed."""

from collections.abc import Sequence

from clean_room_agent.artifacts.plans import PlanStep, PlanVerdict
from clean_room_agent.execute.judgments import YesNo
from clean_room_agent.execute.plan_drafts import Revision
from clean_room_agent.execute.plan_prompts import STEPS_SO_FAR, UNDER_WAY, UnderWayInputs
from clean_room_agent.llm.answers import Choice
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.probes import NOTHING
from clean_room_agent.llm.prompt import Prompt, yes_no_prompt
from clean_room_agent.unified_diff import newest_hunks

DIFF_CHARS = 2000
"""Of the newest changes in a question."""
UNREADABLE = "what cannot be read refuses no plan"


class GoalCheckInputs(UnderWayInputs, frozen=True, kw_only=True):
    """A plan before and after it was revised; texts may be empty."""

    done: tuple[str, ...]
    """The outcomes of the steps that were tried."""
    before: tuple[str, ...]
    """The steps before the revision, one line each."""
    after: tuple[str, ...]


GOAL_CHECK_TEMPLATE = (
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

GOAL_CHECK: Prompt[GoalCheckInputs, Choice] = yes_no_prompt(
    name="goal_check",
    title="Judge whether a revised plan keeps the goal",
    template=GOAL_CHECK_TEMPLATE,
)

NO_PLAN = GoalCheckInputs(
    task=NOTHING, part=NOTHING, diff="", done=(NOTHING,), before=(NOTHING,), after=(NOTHING,)
)


class GoalCheck:
    """Compares revisions of one plan with its goal."""

    def __init__(self, models: ModelClient, revision: Revision, *, pass_id: str) -> None:
        self._revision = revision
        self._question = YesNo(
            models,
            GOAL_CHECK,
            pass_id=pass_id,
            nothing=NO_PLAN,
            unreadable=True,
            rule=UNREADABLE,
            no_is_final=True,
        )
        self.verdicts: tuple[PlanVerdict, ...] = ()
        """In the order in which they were asked for."""

    def faults(self, after: Sequence[PlanStep]) -> tuple[str, ...]:
        """Why the revised steps are refused; empty if they keep the goal.

        Raises:
            WindowExceeded: the question does not fit, even without the changes made so far.
            ModelError: the server failed.
        """
        given = self._revision
        ways = [self._inputs(after, diff) for diff in (newest_hunks(given.diff, DIFF_CHARS), "")]
        kept = {step.id for step in after}
        gone = [step for step in given.before if step.id not in kept]
        item = f"{' '.join(step.id for step in given.before)} to {' '.join(step.id for step in after) or 'nothing'}"
        (verdict,) = self._question.ask([(item, ways)])
        self.verdicts += (verdict,)
        if verdict.yes:
            return ()
        missing = f"; keep what these steps were for: {'; '.join(map(_describe, gone))}" if gone else ""
        return (f"with this plan, not all that the task asks for is done{missing}",)

    def _inputs(self, after: Sequence[PlanStep], diff: str) -> GoalCheckInputs:
        given = self._revision
        return GoalCheckInputs(
            task=given.task,
            part=given.part.description,
            diff=diff,
            done=given.done,
            before=tuple(f"- {_describe(step)}" for step in given.before),
            after=tuple(f"- {_describe(step)}" for step in after),
        )


def _describe(step: PlanStep) -> str:
    """The step in one line."""
    return f"{step.id}: {' '.join(step.description.split())} ({', '.join(target.path for target in step.target_files)})"
