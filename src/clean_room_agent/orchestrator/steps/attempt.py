"""One attempt at a step: asks for edits, and puts them into a commit to be tested."""

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextPackage, RefinementRequest
from clean_room_agent.artifacts.edits import EditReport, PatchEdit, PatchResult
from clean_room_agent.artifacts.evidence import describe_evidence, evidence_bound
from clean_room_agent.artifacts.outcomes import Action, AttemptOutcome, EventKind
from clean_room_agent.artifacts.plans import Part, PlanStep
from clean_room_agent.execute.edits.apply import Applied, apply_edits, paths_named
from clean_room_agent.execute.edits.rules import EditRules
from clean_room_agent.execute.implement import (
    IMPLEMENT,
    WHOLE_SYMBOLS,
    AttemptSummary,
    Implemented,
    StepInstruction,
    answer_fingerprint,
    implement,
    raised_answer_tokens,
)
from clean_room_agent.llm.transport import Sampling
from clean_room_agent.orchestrator.commits import Tree
from clean_room_agent.orchestrator.events import Note
from clean_room_agent.orchestrator.run import Run, is_asked
from clean_room_agent.orchestrator.steps.missing_context import missing_after_refusal, unshown_targets
from clean_room_agent.orchestrator.task_evidence import task_evidence
from clean_room_agent.orchestrator.test_runs.gate import StepVerdict
from clean_room_agent.orchestrator.test_runs.results import TestRun

TRIED = "Tried before, and not enough:"
VARIED_TEMPERATURE = 0.7
VARIED_TOP_K = 40
VARIED_TOP_P = 0.95


class StepJob(Struct, frozen=True, kw_only=True):
    """A step to be done, with its surroundings in the plan."""

    part: Part
    step: PlanStep
    constraints: str
    """What a user's plan says besides its steps. What a model said of its own plan is no fact to go by."""
    last: bool = False
    """Whether it is the last step of the run."""
    depended_on: bool = False
    """Whether another step, or another part, needs it."""
    plan_number: int = 0
    """The number of its part's plan, 1 for the first; 0 if the part cannot be replanned."""


class AttemptChange(Struct, frozen=True, kw_only=True):
    """The change that an answer's edits made."""

    commit: str = ""
    """Set if the edits were applied, even if the tests then failed."""
    diff: str = ""
    result: PatchResult | None = None
    """The result of each edit; None if the answer contained no readable one."""
    untouched: tuple[str, ...] = ()
    """The targets that the edits left unchanged, like "modify src/a.py"."""


class ChangeJudgment(Struct, frozen=True, kw_only=True):
    """The tests' judgment of a change."""

    tests: TestRun
    verdict: StepVerdict
    unfinished: bool = False
    """Whether the change may stay, but a better one is worth trying, since the run would end with red goal tests."""


class Attempt(Struct, frozen=True, kw_only=True):
    """The outcome of one attempt."""

    outcome: AttemptOutcome
    detail: str
    answer: Implemented
    change: AttemptChange = field(default_factory=AttemptChange)
    judgment: ChangeJudgment | None = None
    """None if it was not tested."""
    missing: RefinementRequest | None = None
    """What its failure shows its context to lack."""
    feedback: str = ""
    """What the next attempt's prompt says about it."""

    @property
    def passed(self) -> bool:
        """Whether its change may stay."""
        return self.outcome is AttemptOutcome.APPLIED_AND_PASSED

    @property
    def unfinished(self) -> bool:
        """Whether it may stay, but a better one is worth trying."""
        return self.judgment is not None and self.judgment.unfinished

    @property
    def awaits_tests(self) -> bool:
        """Whether it still has to be tested."""
        return bool(self.change.commit) and self.judgment is None

    @property
    def fingerprint(self) -> str:
        """Equal for answers with the same text."""
        return answer_fingerprint(self.answer.step.raw_response)

    @property
    def outcome_so_far(self) -> AttemptOutcome:
        """The outcome as the next attempt sees it; red tests count as failed as long as the attempt is not accepted."""
        if not self.unfinished:
            return self.outcome
        return AttemptOutcome.INSUFFICIENT_CONTEXT if self.missing else AttemptOutcome.TESTS_FAILED

    def summary(self) -> AttemptSummary:
        """This attempt as the next one's prompt shows it: its outcome, but not what it shows to be missing."""
        outcome = self.outcome_so_far
        if outcome is AttemptOutcome.INSUFFICIENT_CONTEXT:
            outcome = AttemptOutcome.TESTS_FAILED if self.judgment else AttemptOutcome.REFUSED
        return AttemptSummary(
            outcome=outcome.value.replace("_", " "),
            why=self.detail,
            edits=self.answer.step.edits,
            feedback=self.feedback or self.detail,
        )


def ask(
    run: Run,
    job: StepJob,
    package: ContextPackage,
    action: Action,
    *,
    pass_id: str,
    number: int,
    shown: Sequence[Attempt] = (),
    again: bool = False,
) -> Implemented:
    """Ask the coder for the attempt of that number, with the earlier attempts `shown`. May be called concurrently. `again`: the
    same prompt was answered before, so the answer is sampled with a temperature and a new seed.

    Raises:
        WindowExceeded: the prompt does not fit.
    """
    instruction = replace(
        instruction_for(run, job),
        diff=run.commits.readable_diff(),
        unshown=unshown_targets(job.step, package),
        failures=tuple(one.summary() for one in shown),
        hint=action.hint or (WHOLE_SYMBOLS if action.form == "whole_symbol" else ""),
    )
    varied = Sampling(temperature=VARIED_TEMPERATURE, seed=number, top_k=VARIED_TOP_K, top_p=VARIED_TOP_P)
    return implement(
        run.models,
        package,
        instruction,
        pass_id=pass_id,
        sampling=varied if action.vary or again else None,
        max_answer_tokens=raised_answer_tokens(run.models.window("coding")) if action.more_room else None,
        tag=action.model,
    )


def place(
    run: Run,
    job: StepJob,
    package: ContextPackage,
    answer: Implemented,
    *,
    pass_id: str,
    earlier: Sequence[Attempt],
) -> Attempt:
    """Turn an answer into the attempt after the `earlier` ones: a commit of its edits that still has to be tested, or a
    failure.
    """
    for dropped in answer.dropped:
        run.recorder.event(pass_id, EventKind.DROPPED_FROM_PROMPT, dropped)
    unusable = _unusable_outcome(answer)
    if unusable is not None:
        outcome, detail = unusable
        return Attempt(outcome=outcome, detail=detail, answer=answer, feedback=detail)
    tree = run.commits.tree()
    applied = _apply_within_rules(run, job, package, tree, answer.step.edits)
    refusal = ""
    if not applied.result.success:
        from clean_room_agent.execute.edits.feedback import describe

        refusal = describe(applied.result)
    untouched = () if refusal else _untouched_targets(job, applied, tree)
    known = {target for one in earlier for target in one.change.untouched}
    if not known.issuperset(untouched):
        refusal = f"nothing was applied, because the step also has to: {', '.join(untouched)}"
    # What the answer creates and deletes again was never there.
    texts = {path: text for path, text in applied.texts.items() if text is not None or path in tree.paths}
    changes = tree.encode(texts) if not refusal else {}
    if isinstance(changes, EditReport):
        refusal, changes = changes.detail, {}
    if refusal:
        missing = missing_after_refusal(applied.result.reports, package, tree.paths)
        return Attempt(
            outcome=AttemptOutcome.INSUFFICIENT_CONTEXT if missing else AttemptOutcome.REFUSED,
            detail=applied.result.error_info or refusal,
            answer=answer,
            change=AttemptChange(result=applied.result, untouched=untouched),
            missing=missing,
            feedback=refusal,
        )
    if untouched:
        run.recorder.event(pass_id, EventKind.TARGET_UNTOUCHED, ", ".join(untouched))
    commit = run.commits.head
    if changes:
        title = job.step.description.strip() or run.task.description
        message = f"{title}\n\nCra-Task: {run.task.task_id}\nCra-Step: {pass_id}\n"
        name = f"attempts/{job.part.id}/{job.step.id}/{len(earlier) + 1}"
        commit = run.commits.commit(changes, message, keep_as=name)
    return Attempt(
        outcome=AttemptOutcome.APPLIED_AND_PASSED,
        detail="",
        answer=answer,
        change=AttemptChange(
            commit=commit,
            diff=run.commits.diff(run.commits.head, commit) if changes else "",
            result=applied.result,
            untouched=untouched,
        ),
    )


def instruction_for(run: Run, job: StepJob) -> StepInstruction:
    """The instruction for the step, with the state of the tests before it; without the run's changes and earlier
    attempts.
    """
    evidence = task_evidence(run, run.progress.accepted)
    paths = {target.path for target in job.step.target_files}
    tried = [f"- {one.words}" for one in run.progress.tried if one.path in paths]
    return StepInstruction(
        task=run.task.words,
        part=job.part.description,
        step=job.step,
        constraints=job.constraints,
        evidence="\n".join(
            (describe_evidence(evidence, bound=evidence_space(run)), *((TRIED, *tried) if tried else ()))
        ),
    )


def evidence_space(run: Run) -> int:
    """Characters that evidence from tests may take in a prompt."""
    return evidence_bound(run.models.window(IMPLEMENT).context)


def note_unshown(run: Run, job: StepJob, package: ContextPackage, pass_id: str, *, first: bool) -> None:
    """Record what the step names but its prompt cannot show; at a step's `first` attempt the observer is notified, too."""
    unshown = unshown_targets(job.step, package)
    for name in unshown:
        run.recorder.event(pass_id, EventKind.TARGET_NOT_SHOWN, name)
    if unshown and first:
        names = ", ".join(unshown)
        run.recorder.observer.notice(Note(text=f"the step changes what is too large for its prompt: {names}"))


def _unusable_outcome(answer: Implemented) -> tuple[AttemptOutcome, str] | None:
    if answer.truncated:
        return AttemptOutcome.TRUNCATED, f"{answer.step.error_info}; nothing was applied"
    if answer.bad is not None:
        empty = answer.bad.kind == "empty"
        return AttemptOutcome.NO_EDITS if empty else AttemptOutcome.UNREADABLE, answer.bad.fault
    if not answer.step.edits:
        return AttemptOutcome.NO_EDITS, "the answer held no edit"
    return None


def _apply_within_rules(
    run: Run, job: StepJob, package: ContextPackage, tree: Tree, edits: tuple[PatchEdit, ...]
) -> Applied:
    texts, uneditable = tree.texts(paths_named(edits))
    rules = EditRules(
        targets=job.step.target_files,
        planned=tuple(sorted(run.progress.plan.files)),
        protected=run.limits.edit.protected,
        scripts=tuple(sorted(run.deciding.files)),
        uneditable={**_shadowing_files(run, job, tree, edits), **uneditable},
        places=tree.places,
    )
    return apply_edits(edits, texts, package, rules)


def _shadowing_files(run: Run, job: StepJob, tree: Tree, edits: tuple[PatchEdit, ...]) -> dict[str, str]:
    """The new files that would be loaded in place of others, and why that is refused; not those that the user names."""
    deleted = {edit.file_path for edit in edits if edit.kind == "delete"}
    deleted.update(target.path for target in job.step.target_files if target.role == "delete")
    gone = deleted | (run.deciding.paths - tree.paths)
    found: dict[str, str] = {}
    for edit in edits:
        path = edit.file_path
        hidden = "" if is_asked(run, path) else run.deciding.hides(path, gone)
        if hidden:
            found[path] = f"it would be loaded in place of {hidden}; choose another name"
    return found


def _untouched_targets(job: StepJob, applied: Applied, tree: Tree) -> tuple[str, ...]:
    """The targets that no edit changed and that are not already as wanted. The first time, the step does not count as done
    because of them.
    """
    step = job.step
    touched = {report.file_path for report in applied.result.reports}
    if step.any_of_files and any(target.path in touched for target in step.target_files):
        return ()
    left = []
    for target in step.target_files:
        present = target.path in tree.paths
        settled = (target.role == "delete" and not present) or (target.role == "create" and present)
        if target.path not in touched and not settled:
            left.append(f"{target.role} {target.path}")
    return tuple(left)
