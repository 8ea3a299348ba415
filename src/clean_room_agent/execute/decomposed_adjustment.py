"""Decomposed adjustment of a plan: which steps stay valid, what caused each failure, what needs a new step.

One call then writes the steps according to these verdicts; it is left out if there is nothing to write. Changes in the
answer that no verdict asked for are undone: a step that stays is unchanged, and there are new steps only if one is
wanted. After a refusal, a step that was to be dropped may be kept.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.plans import (
    AdjustmentVerdicts,
    FailureSignal,
    PlanAdjustment,
    PlanStep,
    PlanVerdict,
)
from clean_room_agent.execute.judgments import YesNo
from clean_room_agent.execute.plan_drafts import (
    AdjustmentAsked,
    PlanDraft,
    Rejected,
    ask_for_draft,
    steps_as_json,
    steps_from,
    unreadable_draft,
)
from clean_room_agent.execute.plan_prompts import (
    ADJUSTMENT_FINALIZE,
    ADJUSTMENT_NEW_STEP,
    ADJUSTMENT_ROOT_CAUSE,
    ADJUSTMENT_STEP_VIABILITY,
    DIFF_CHARS,
    FinalizeInputs,
    NewStepInputs,
    RootCauseInputs,
    StepViabilityInputs,
    UnderWayInputs,
)
from clean_room_agent.execute.prompt_fitting import all_contents
from clean_room_agent.llm.answers import Choice
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.probes import NOTHING
from clean_room_agent.llm.prompt import InputsT, Prompt
from clean_room_agent.unified_diff import newest_hunks

TRIED = "(tried)"
"""Marks the step that was tried in the item of a question about it."""
NO_VERDICT = "no verdict about the remaining steps could be read"
NO_STEP = StepViabilityInputs(task=NOTHING, part=NOTHING, done=(NOTHING,), failures=(NOTHING,), step=NOTHING)
NO_CAUSE = RootCauseInputs(task=NOTHING, part=NOTHING, failure=NOTHING, step=NOTHING, remains=True)
NO_FAILURE = NewStepInputs(task=NOTHING, part=NOTHING, done=(NOTHING,), remaining=(NOTHING,), failure=NOTHING)


UnderWayT = TypeVar("UnderWayT", bound=UnderWayInputs)


class DecomposedAdjustment:
    """Makes the drafts of one adjustment; verdicts of one draft are reused for the next."""

    def __init__(
        self, models: ModelClient, package: ContextPackage | None, asked: AdjustmentAsked, *, pass_id: str
    ) -> None:
        self._models = models
        self._package = package
        self._asked = asked
        self._pass_id = pass_id
        self._done = tuple(map(str, asked.outcomes))
        self._failed = {outcome.step.id for outcome in asked.outcomes if not outcome.succeeded}
        self._failures = {f"f{number}": _as_item(one) for number, one in enumerate(asked.failures, 1)}
        self._diffs = tuple(dict.fromkeys((newest_hunks(asked.diff, DIFF_CHARS), "")))

        def question(prompt: Prompt[InputsT, Choice], nothing: InputsT, rule: str) -> YesNo[InputsT]:
            return YesNo(models, prompt, pass_id=pass_id, nothing=nothing, unreadable=False, rule=rule)

        self._valid = question(
            ADJUSTMENT_STEP_VIABILITY, NO_STEP, "a step about which nothing can be read goes"
        )
        self._cause = question(ADJUSTMENT_ROOT_CAUSE, NO_CAUSE, "what cannot be read attributes nothing")
        self._new = question(ADJUSTMENT_NEW_STEP, NO_FAILURE, "what cannot be read adds no step")

    def draft(self, rejected: Rejected) -> PlanDraft[PlanAdjustment]:
        """What remains of the part.

        Raises:
            WindowExceeded: a question, or the primary items of the context, do not fit.
            ModelError: the server failed.
        """
        account = self._collect_verdicts()
        verdicts = account.verdicts
        if not any(verdict.readable for verdict in verdicts):
            return PlanDraft(
                value=None, faults=(NO_VERDICT,), verdicts=verdicts, account=account, endless=True
            )
        if account.invalid or account.must_change or account.new_step_for:
            return self._draft_adjustment(account, rejected)
        steps, notes = _without_needs(self._asked.remaining, self._failed)
        kept = PlanAdjustment(revised_steps=steps, rationale="no remaining step is about what failed")
        return PlanDraft(value=kept, notes=notes, verdicts=verdicts, account=account)

    def _collect_verdicts(self) -> AdjustmentVerdicts:
        """All verdicts; if none about the steps can be read, only those."""
        asked, task, part = self._asked, self._asked.task, self._asked.part.description
        failures = tuple(self._failures.values())
        validity = {
            step.id: StepViabilityInputs(
                task=task, part=part, done=self._done, failures=failures, step=_step_line(step)
            )
            for step in asked.remaining
        }
        valid = self._ask_for_verdicts(self._valid, validity)
        if not any(verdict.readable for verdict in valid):
            return AdjustmentVerdicts(failures=asked.failures, verdicts=valid)
        standing = [step for step, verdict in zip(asked.remaining, valid, strict=True) if verdict.yes]
        causes = self._judge_root_causes(standing)
        found = [verdict.item.split(" ", 1) for verdict in causes if verdict.yes]
        unexplained = tuple(name for name in self._failures if name not in {name for name, _ in found})
        changed = {step for _, step in found if not step.endswith(TRIED)}
        left = tuple(map(_step_line, standing))
        needs = {
            name: NewStepInputs(
                task=task, part=part, done=self._done, remaining=left, failure=self._failures[name]
            )
            for name in unexplained
        }
        new = self._ask_for_verdicts(self._new, needs)
        return AdjustmentVerdicts(
            failures=asked.failures,
            verdicts=(*valid, *causes, *new),
            invalid=tuple(verdict.item for verdict in valid if not verdict.yes),
            must_change=tuple(step.id for step in standing if step.id in changed),
            unexplained=unexplained,
            new_step_for=tuple(verdict.item for verdict in new if verdict.yes),
        )

    def _judge_root_causes(self, standing: Sequence[PlanStep]) -> tuple[PlanVerdict, ...]:
        """For each failure, whether the newest step caused it, and which of the remaining steps have to change because
        of it.
        """
        task, part = self._asked.task, self._asked.part.description
        newest = self._asked.outcomes[-1].step
        steps = ((newest, False), *((step, True) for step in standing))
        questions = {
            f"{name} {step.id}" if remains else f"{name} {step.id} {TRIED}": RootCauseInputs(
                task=task, part=part, failure=failure, step=_step_line(step), remains=remains
            )
            for name, failure in self._failures.items()
            for step, remains in steps
        }
        return self._ask_for_verdicts(self._cause, questions)

    def _ask_for_verdicts(
        self, question: YesNo[UnderWayT], items: Mapping[str, UnderWayT]
    ) -> tuple[PlanVerdict, ...]:
        """The verdicts, each asked for with the newest changes of the run, or without them where they do not fit."""
        return question.ask(
            [(item, [replace(inputs, diff=diff) for diff in self._diffs]) for item, inputs in items.items()]
        )

    def _draft_adjustment(self, account: AdjustmentVerdicts, rejected: Rejected) -> PlanDraft[PlanAdjustment]:
        asked = self._asked
        inputs = FinalizeInputs(
            task=asked.task,
            part=asked.part.description,
            done=self._done,
            failures=tuple(self._failures.values()),
            remaining=steps_as_json(asked.remaining),
            verdicts=self._decision_lines(account),
            max_steps=asked.max_steps,
        )
        wanted = all_contents(self._package, asked.diff, rejected=rejected.text)
        reply, notes = ask_for_draft(
            self._models, ADJUSTMENT_FINALIZE, inputs, wanted, rejected, pass_id=self._pass_id
        )
        if reply.value is None:
            return unreadable_draft(reply, notes)
        answered, renamed = steps_from(reply.value.steps)
        kept, put_right = _as_decided(answered, asked.remaining, account, keeps=bool(rejected.faults))
        gone = {step.id for step in asked.remaining} - {step.id for step in kept}
        steps, freed = _without_needs(kept, gone | self._failed)
        return PlanDraft(
            value=PlanAdjustment(
                revised_steps=steps, rationale=reply.value.analysis, changes_made=reply.value.changes
            ),
            text=reply.text,
            notes=notes + renamed + put_right + freed,
            call_ids=(reply.call_id,),
            verdicts=account.verdicts,
            account=account,
        )

    def _decision_lines(self, account: AdjustmentVerdicts) -> tuple[str, ...]:
        """What happens to each step, and which new ones are wanted, in words."""
        yes = {one.item for one in account.verdicts if one.yes}

        def fate(step: PlanStep) -> str:
            if step.id in account.invalid:
                return "goes"
            if step.id not in account.must_change:
                return "stays"
            causes = (words for name, words in self._failures.items() if f"{name} {step.id}" in yes)
            return f"must change: {' '.join(causes)}"

        fates = tuple(f"{step.id}: {fate(step)}" for step in self._asked.remaining)
        wanted = tuple(f"a new step is wanted: {self._failures[name]}" for name in account.new_step_for)
        return (*fates, *wanted)


def _as_decided(
    answered: Sequence[PlanStep], remaining: Sequence[PlanStep], account: AdjustmentVerdicts, *, keeps: bool
) -> tuple[tuple[PlanStep, ...], tuple[str, ...]]:
    """The answer without changes that no verdict asked for, and a note on each of them. With `keeps`, steps that were
    to be dropped may stay.
    """
    before = {step.id: step for step in remaining}
    steps: list[PlanStep] = []
    notes = []
    for step in answered:
        if step.id not in before and not account.new_step_for:
            notes.append(f"left out: step {step.id}, for which there is no failure")
        elif step.id in account.invalid and not keeps:
            notes.append(f"left out: step {step.id}, which goes")
        else:
            steps.append(step if step.id in account.must_change else before.get(step.id, step))
    given = {step.id for step in steps}
    lost = [step for step in remaining if step.id not in given and step.id not in account.invalid]
    notes += [f"put back: step {step.id}, which stays" for step in lost]
    return (*steps, *lost), tuple(notes)


def _without_needs(
    steps: Sequence[PlanStep], gone: Collection[str]
) -> tuple[tuple[PlanStep, ...], tuple[str, ...]]:
    """The steps without dependencies on those that are `gone`, which the judge of each step knew; and a note on each
    dependency.
    """
    notes = tuple(
        f"{step.id} is to be done without {need}"
        for step in steps
        for need in step.depends_on
        if need in gone
    )
    freed = (
        step.model_copy(update={"depends_on": tuple(need for need in step.depends_on if need not in gone)})
        for step in steps
    )
    return tuple(freed), notes


def _step_line(step: PlanStep) -> str:
    files = ", ".join(f"{target.role} {target.path}" for target in step.target_files)
    return f"{step.id}: {' '.join(step.description.split())} ({files})"


def _as_item(failure: FailureSignal) -> str:
    """The failure as a question shows it."""
    message = "\n  ".join(failure.message.split("\n")) or "it said nothing"
    return f"- {failure.category.replace('_', ' ')}, {failure.source}: {message}"
