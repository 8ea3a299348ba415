"""Checks that a revised plan still does what the user asked for, before it is followed."""

from collections.abc import Sequence

from clean_room_agent.artifacts.plans import PlanStep, PlanVerdict
from clean_room_agent.execute.judgments import YesNo
from clean_room_agent.execute.plan_drafts import Revision
from clean_room_agent.execute.prompts.adjustments import GOAL_CHECK, GoalCheckInputs
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.probes import NOTHING
from clean_room_agent.unified_diff import newest_hunks

DIFF_CHARS = 2000
"""Of the newest changes in a question."""
UNREADABLE = "what cannot be read refuses no plan"
NO_PLAN = GoalCheckInputs(
    task=NOTHING, part=NOTHING, diff="", done=(NOTHING,), before=(NOTHING,), after=(NOTHING,)
)


class GoalCheck:
    """Compares revisions of one plan with its goal."""

    def __init__(self, models: ModelClient, revision: Revision, *, pass_id: str) -> None:
        self._revision = revision
        self._question = YesNo(
            models, GOAL_CHECK, pass_id=pass_id, nothing=NO_PLAN, unreadable=True, rule=UNREADABLE
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
