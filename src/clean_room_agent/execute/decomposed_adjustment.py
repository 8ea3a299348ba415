"""Decomposed adjustment of a plan: which steps stay valid, what caused each failure, what needs a new step.

One call then writes the steps according to these verdicts; it is left out if there is nothing to write. Changes in the
answer that no verdict asked for are undone: a step that stays is unchanged, and there are new steps only if one is
wanted. After a refusal, a step that was to be dropped may be kept.
"""

from collections.abc import Collection, Sequence

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.plans import (
    AdjustmentVerdicts,
    FailureSignal,
    PlanAdjustment,
    PlanStep,
    PlanVerdict,
)
from clean_room_agent.execute.decomposed_adjustment_prompts import (
    ADJUSTMENT_FINALIZE,
    ADJUSTMENT_NEW_STEP,
    ADJUSTMENT_ROOT_CAUSE,
    ADJUSTMENT_STEP_VIABILITY,
    FinalizeInputs,
    NewStepInputs,
    RootCauseInputs,
    StepViabilityInputs,
)
from clean_room_agent.execute.judgments import YesNo
from clean_room_agent.execute.one_call_plans import describe_outcome, renamed_notes, steps_from
from clean_room_agent.execute.plan_drafts import (
    AdjustmentAsked,
    Draft,
    Rejected,
    left_out,
    sampling_after,
    steps_as_json,
    unreadable_draft,
)
from clean_room_agent.execute.prompt_fitting import PromptContents, all_contents, fit
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.probes import NOTHING
from clean_room_agent.unified_diff import newest_hunks

DIFF_CHARS = 2000
"""Of the newest changes, in a question."""
TRIED = "(tried)"
"""Marks the step that was tried in the item of a question about it."""
NO_VERDICT = "no verdict about the remaining steps could be read"
STEP_GOES = "a step about which nothing can be read goes"
NOT_ATTRIBUTED = "what cannot be read attributes nothing"
NO_NEW_STEP = "what cannot be read adds no step"
NO_STEP = StepViabilityInputs(
    task=NOTHING, part=NOTHING, diff="", done=(NOTHING,), failures=(NOTHING,), step=NOTHING
)
NO_CAUSE = RootCauseInputs(task=NOTHING, part=NOTHING, diff="", failure=NOTHING, step=NOTHING, remains=True)
NO_FAILURE = NewStepInputs(
    task=NOTHING, part=NOTHING, diff="", done=(NOTHING,), remaining=(NOTHING,), failure=NOTHING
)


class DecomposedAdjustment:
    """Makes the drafts of one adjustment; verdicts of one draft are reused for the next."""

    def __init__(
        self, models: ModelClient, package: ContextPackage | None, asked: AdjustmentAsked, *, pass_id: str
    ) -> None:
        self._models = models
        self._package = package
        self._asked = asked
        self._pass_id = pass_id
        self._done = tuple(map(describe_outcome, asked.outcomes))
        self._failed = {outcome.step.id for outcome in asked.outcomes if not outcome.succeeded}
        self._failures = {f"f{number}": _words(one) for number, one in enumerate(asked.failures, 1)}
        self._diffs = tuple(dict.fromkeys((newest_hunks(asked.diff, DIFF_CHARS), "")))
        self._valid = YesNo(
            models,
            ADJUSTMENT_STEP_VIABILITY,
            pass_id=pass_id,
            nothing=NO_STEP,
            unreadable=False,
            rule=STEP_GOES,
        )
        self._cause = YesNo(
            models,
            ADJUSTMENT_ROOT_CAUSE,
            pass_id=pass_id,
            nothing=NO_CAUSE,
            unreadable=False,
            rule=NOT_ATTRIBUTED,
        )
        self._new = YesNo(
            models,
            ADJUSTMENT_NEW_STEP,
            pass_id=pass_id,
            nothing=NO_FAILURE,
            unreadable=False,
            rule=NO_NEW_STEP,
        )

    def draft(self, rejected: Rejected) -> Draft[PlanAdjustment]:
        """What remains of the part.

        Raises:
            WindowExceeded: a question, or the primary items of the context, do not fit.
            ModelError: the server failed.
        """
        account = self._judged()
        if not any(verdict.readable for verdict in account.verdicts):
            return Draft(
                value=None,
                text="",
                fault=NO_VERDICT,
                notes=(),
                call_ids=(),
                verdicts=account.verdicts,
                account=account,
                endless=True,
            )
        if not (account.invalid or account.must_change or account.new_step_for):
            steps, notes = _without_needs(self._asked.remaining, self._failed)
            kept = PlanAdjustment(revised_steps=steps, rationale="no remaining step is about what failed")
            return Draft(
                value=kept,
                text="",
                fault="",
                notes=notes,
                call_ids=(),
                verdicts=account.verdicts,
                account=account,
            )
        return self._written(account, rejected)

    def _judged(self) -> AdjustmentVerdicts:
        """All verdicts; if none about the steps can be read, only those."""
        asked = self._asked
        valid = self._valid.ask(
            [
                (
                    step.id,
                    [
                        StepViabilityInputs(
                            task=asked.task,
                            part=asked.part.description,
                            diff=diff,
                            done=self._done,
                            failures=tuple(self._failures.values()),
                            step=_line(step),
                        )
                        for diff in self._diffs
                    ],
                )
                for step in asked.remaining
            ]
        )
        if not any(verdict.readable for verdict in valid):
            return AdjustmentVerdicts(failures=asked.failures, verdicts=valid)
        standing = [step for step, verdict in zip(asked.remaining, valid, strict=True) if verdict.yes]
        causes = self._causes(standing)
        blamed = {verdict.item.split(" ")[0] for verdict in causes if verdict.yes}
        unexplained = tuple(name for name in self._failures if name not in blamed)
        new = self._new.ask(
            [
                (
                    name,
                    [
                        NewStepInputs(
                            task=asked.task,
                            part=asked.part.description,
                            diff=diff,
                            done=self._done,
                            remaining=tuple(map(_line, standing)),
                            failure=self._failures[name],
                        )
                        for diff in self._diffs
                    ],
                )
                for name in unexplained
            ]
        )
        changed = {
            verdict.item.split(" ")[1]
            for verdict in causes
            if verdict.yes and not verdict.item.endswith(TRIED)
        }
        return AdjustmentVerdicts(
            failures=asked.failures,
            verdicts=(*valid, *causes, *new),
            invalid=tuple(verdict.item for verdict in valid if not verdict.yes),
            must_change=tuple(step.id for step in standing if step.id in changed),
            unexplained=unexplained,
            new_step_for=tuple(verdict.item for verdict in new if verdict.yes),
        )

    def _causes(self, standing: Sequence[PlanStep]) -> tuple[PlanVerdict, ...]:
        """For each failure, whether the newest step caused it, and which of the remaining steps have to change because
        of it.
        """
        newest = self._asked.outcomes[-1].step
        steps = ((newest, False), *((step, True) for step in standing))
        return self._cause.ask(
            [
                (
                    f"{name} {step.id}" if remains else f"{name} {step.id} {TRIED}",
                    [
                        RootCauseInputs(
                            task=self._asked.task,
                            part=self._asked.part.description,
                            diff=diff,
                            failure=words,
                            step=_line(step),
                            remains=remains,
                        )
                        for diff in self._diffs
                    ],
                )
                for name, words in self._failures.items()
                for step, remains in steps
            ]
        )

    def _written(self, account: AdjustmentVerdicts, rejected: Rejected) -> Draft[PlanAdjustment]:
        asked = self._asked
        decided = self._decided(account)

        def build(carried: PromptContents) -> FinalizeInputs:
            return FinalizeInputs(
                context=carried.sections,
                diff=carried.diff,
                task=asked.task,
                part=asked.part.description,
                done=self._done,
                failures=tuple(self._failures.values()),
                remaining=steps_as_json(asked.remaining),
                verdicts=decided,
                max_steps=asked.max_steps,
                rejected=carried.rejected,
                faults=rejected.faults,
            )

        carried = all_contents(self._package, asked.diff, rejected=rejected.text)
        package = ADJUSTMENT_FINALIZE.max_answer_tokens
        fitted = fit(self._models, ADJUSTMENT_FINALIZE, build, carried, answer_tokens=package)
        sampling = sampling_after(self._models, rejected)
        reply = self._models.ask(ADJUSTMENT_FINALIZE, fitted.inputs, pass_id=self._pass_id, sampling=sampling)
        notes = left_out(fitted.dropped)
        if reply.value is None:
            return unreadable_draft(reply, notes)
        answered, renamed = steps_from(reply.value.steps)
        decided_steps, put_right = _as_decided(
            answered, asked.remaining, account, keeps=bool(rejected.faults)
        )
        gone = {step.id for step in asked.remaining} - {step.id for step in decided_steps}
        steps, freed = _without_needs(decided_steps, gone | self._failed)
        plan = PlanAdjustment(
            revised_steps=steps, rationale=reply.value.analysis, changes_made=reply.value.changes
        )
        return Draft(
            value=plan,
            text=reply.text,
            fault="",
            notes=notes + renamed_notes(renamed) + put_right + freed,
            call_ids=(reply.call_id,),
            verdicts=account.verdicts,
            account=account,
        )

    def _decided(self, account: AdjustmentVerdicts) -> tuple[str, ...]:
        def fate(step: PlanStep) -> str:
            if step.id in account.invalid:
                return "goes"
            if step.id not in account.must_change:
                return "stays"
            said = {one.item for one in account.verdicts if one.yes}
            causes = (words for name, words in self._failures.items() if f"{name} {step.id}" in said)
            return f"must change: {' '.join(causes)}"

        fates = tuple(f"{step.id}: {fate(step)}" for step in self._asked.remaining)
        wanted = tuple(f"a new step is wanted: {self._failures[name]}" for name in account.new_step_for)
        return (*fates, *wanted)


def _as_decided(
    answered: Sequence[PlanStep],
    remaining: Sequence[PlanStep],
    account: AdjustmentVerdicts,
    *,
    keeps: bool,
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
        elif step.id in before and step.id not in account.must_change:
            steps.append(before[step.id])
        else:
            steps.append(step)
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
    freed = tuple(
        step.model_copy(update={"depends_on": tuple(need for need in step.depends_on if need not in gone)})
        for step in steps
    )
    notes = tuple(
        f"{step.id} is to be done without {need}"
        for step in steps
        for need in step.depends_on
        if need in gone
    )
    return freed, notes


def _line(step: PlanStep) -> str:
    """The step in one line."""
    files = ", ".join(f"{target.role} {target.path}" for target in step.target_files)
    return f"{step.id}: {' '.join(step.description.split())} ({files})"


def _words(failure: FailureSignal) -> str:
    """The failure as a question shows it."""
    kind = failure.category.replace("_", " ")
    said = "\n  ".join(failure.message.split("\n")) or "it said nothing"
    return f"- {kind}, {failure.source}: {said}"
