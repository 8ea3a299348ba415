"""Makes a scaffold for a step that adds much: asks for its declarations, checks that they parse and import, commits them."""

from collections.abc import Sequence

from msgspec import Struct

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.edits import EditReport
from clean_room_agent.artifacts.outcomes import Action, EventKind
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.edits.feedback import describe
from clean_room_agent.execute.implement import Implemented, raised_answer_tokens, usual_answer_tokens
from clean_room_agent.execute.scaffold import (
    RefusedScaffold,
    ask_scaffold,
    faults_of,
    new_symbols,
    stubs_of,
    why_scaffold,
)
from clean_room_agent.execute.scaffold_context import scaffolded_package
from clean_room_agent.orchestrator.commits import SCAFFOLD_ENTRY, Scaffold
from clean_room_agent.orchestrator.events import PassProgress
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.steps.attempt import Attempt, StepJob, edited, instruction_with_diff
from clean_room_agent.orchestrator.testing.test_commands import import_command, import_fault

ASKED = 2
"""How often the coder is asked for declarations: once, and once more with the faults."""
MAX_SAID = 400
"""Characters of why a scaffold was dropped."""


class _Unproven(Struct, frozen=True, kw_only=True):
    """Why an answer cannot be used as a scaffold."""

    faults: tuple[str, ...]
    hopeless: bool = False
    """Whether another answer would fail the check, too."""


def scaffold_for(
    run: Run,
    job: StepJob,
    package: ContextPackage,
    action: Action,
    *,
    pass_id: str,
    earlier: Sequence[Attempt],
    known: bool,
) -> Scaffold | None:
    """Make the step's scaffold in the pass of the attempt after the `earlier` ones, or say why it was dropped; both are
    recorded. None if the step needs none. If the attempt is `known` from before the run was resumed, this is the
    scaffold that was made for it, if any.

    Raises:
        ModelError: the server failed.
    """
    inputs = (run.commits.head, job.step.model_dump_json(), *(one.change.commit for one in earlier))
    entry = run.journal.entry(pass_id, SCAFFOLD_ENTRY, Scaffold, inputs)
    made = entry.value
    if made is not None and made.commit and not run.commits.exists(made.commit):
        made = None
    if made is None:
        if known:
            return None
        new, reason = _wanted(run, job)
        if not reason:
            return None
        made = entry.keep(_make(run, job, package, action, pass_id, new, reason))
    kind = EventKind.SCAFFOLD if made.stands else EventKind.SCAFFOLD_DROPPED
    run.recorder.event(pass_id, kind, made.described())
    return made


def package_with(run: Run, scaffold: Scaffold, package: ContextPackage) -> ContextPackage:
    """The context updated to the scaffold, which must exist."""
    head = run.commits.tree()
    before, _ = head.texts(scaffold.paths)
    return scaffolded_package(
        package, before, scaffold.texts(head), lambda text: run.models.count(text, "coding")
    )


def _wanted(run: Run, job: StepJob) -> tuple[tuple[str, ...], str]:
    """The new symbols that the step names, and why it should begin with a scaffold; "" if it should not."""
    paths = tuple(target.path for target in job.step.target_files)
    texts, _ = run.commits.tree().texts(paths)
    new = new_symbols(job.step, texts)
    return new, why_scaffold(job.step, new, least=run.limits.solve.scaffold_symbols)


def _make(
    run: Run,
    job: StepJob,
    package: ContextPackage,
    action: Action,
    pass_id: str,
    new: tuple[str, ...],
    reason: str,
) -> Scaffold:
    window = run.models.window("coding")
    run.recorder.observer.notice(PassProgress(doing="declaring what the step adds"))
    refused = RefusedScaffold()
    for asked in range(ASKED):
        try:
            answer = ask_scaffold(
                run.models,
                package,
                instruction_with_diff(run, job),
                new=new,
                refused=refused,
                pass_id=pass_id,
                answer_tokens=(raised_answer_tokens if action.more_room else usual_answer_tokens)(window),
                tag=action.model,
            )
        except WindowExceeded:
            return Scaffold(reason=reason, said="its prompt does not fit the window")
        for dropped in answer.dropped:
            run.recorder.event(pass_id, EventKind.DROPPED_FROM_PROMPT, dropped)
        if answer.truncated:
            return Scaffold(reason=reason, said="its answer was cut off")
        # A plan may name what belongs to another file: insisted on once.
        found = _proven(run, job, package, answer, pass_id, () if asked else new, reason)
        if isinstance(found, Scaffold):
            return found
        refused = RefusedScaffold(edits=answer.step.edits, faults=found.faults)
        if found.hopeless:
            break
    return Scaffold(reason=reason, said="; ".join(refused.faults)[:MAX_SAID])


def _proven(
    run: Run,
    job: StepJob,
    package: ContextPackage,
    answer: Implemented,
    pass_id: str,
    new: tuple[str, ...],
    reason: str,
) -> Scaffold | _Unproven:
    """The scaffold of the answer, if it passes the checks."""
    if answer.bad is not None:
        return _Unproven(faults=(answer.bad.fault,))
    tree = run.commits.tree()
    applied = edited(run, job, package, tree, answer.step.edits)
    if not applied.result.success:
        return _Unproven(faults=(describe(applied.result),))
    after = {path: text for path, text in applied.texts.items() if text is not None}
    before, _ = tree.texts(tuple(after))
    faults = faults_of(job.step, new, before, applied.texts)
    changes = tree.encode(after)
    if isinstance(changes, EditReport):
        faults = (*faults, changes.detail)
    if faults or isinstance(changes, EditReport):
        return _Unproven(faults=faults)
    message = f"Declare what {job.step.id} adds\n\nCra-Task: {run.task.task_id}\nCra-Step: {pass_id}\n"
    commit = run.commits.commit(changes, message)
    fault, repairable = _import_fault(run, commit, tuple(after))
    if fault:
        return _Unproven(faults=(fault,), hopeless=not repairable)
    commit = run.commits.keep(commit, f"scaffolds/{job.part.id}/{job.step.id}")
    return Scaffold(
        reason=reason,
        commit=commit,
        paths=tuple(sorted(after)),
        stubs=stubs_of(before, after),
        said="it parses and imports" if all(map(_is_python, after)) else "it parses",
    )


def _import_fault(run: Run, commit: str, paths: tuple[str, ...]) -> tuple[str, bool]:
    """Why the scaffold's Python files cannot be imported, "" if they can; and whether another answer could help. The
    worktree is back at the run's head afterwards, since contexts are read from it.
    """
    sources = sorted(filter(_is_python, paths))
    if not sources:
        return "", False
    try:
        run.tests.checkout(commit)
        code, said = run.tests.run_apart(import_command(run.tests.commands[-1], sources))
    finally:
        run.tests.checkout(run.commits.head)
    return import_fault(code, said)


def _is_python(path: str) -> bool:
    return path.endswith(".py")
