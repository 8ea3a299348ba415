"""Makes a scaffold for a step that creates code: asks for its declarations, checks that they parse and import, commits them."""

from collections.abc import Mapping, Sequence

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.edits import EditReport
from clean_room_agent.artifacts.outcomes import Action, EventKind
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.edits.feedback import describe
from clean_room_agent.execute.implement import raised_answer_tokens, usual_answer_tokens
from clean_room_agent.execute.scaffold import (
    ask_scaffold,
    created_sources,
    declaration_faults,
    scaffolded_package,
    stubs_of,
)
from clean_room_agent.orchestrator.commits import SCAFFOLD_ENTRY, Scaffold
from clean_room_agent.orchestrator.events import PassProgress
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.steps.attempt import Attempt, StepJob, edited, instruction_with_diff
from clean_room_agent.orchestrator.test_runs.test_commands import import_command, import_fault

MAX_SAID = 400
"""Characters of why a scaffold was dropped."""


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
        created = created_sources(job.step)
        if known or not created:
            return None
        made = entry.keep(_make(run, job, package, action, pass_id, f"it creates {', '.join(created)}"))
    kind = EventKind.SCAFFOLD if made.stands else EventKind.SCAFFOLD_DROPPED
    run.recorder.event(pass_id, kind, made.described())
    return made


def package_with(run: Run, scaffold: Scaffold, package: ContextPackage) -> ContextPackage:
    """The context with the files of the scaffold, which must exist."""
    texts = scaffold.texts(run.commits.tree())
    return scaffolded_package(package, texts, lambda text: run.models.count(text, "coding"))


def _make(
    run: Run, job: StepJob, package: ContextPackage, action: Action, pass_id: str, reason: str
) -> Scaffold:
    made = _declared(run, job, package, action, pass_id)
    fault = made if isinstance(made, str) else "; ".join(declaration_faults(job.step, made))
    changes = {} if fault or isinstance(made, str) else run.commits.tree().encode(made)
    if isinstance(changes, EditReport):
        fault = changes.detail
    if fault or isinstance(made, str) or isinstance(changes, EditReport):
        return Scaffold(reason=reason, said=fault[:MAX_SAID])
    message = f"Declare what {job.step.id} adds\n\nCra-Task: {run.task.task_id}\nCra-Step: {pass_id}\n"
    commit = run.commits.commit(changes, message)
    fault = _import_fault(run, commit, made)
    if fault:
        return Scaffold(reason=reason, said=fault[:MAX_SAID])
    return Scaffold(
        reason=reason,
        commit=run.commits.keep(commit, f"scaffolds/{job.part.id}/{job.step.id}"),
        paths=tuple(sorted(made)),
        stubs=stubs_of(made),
        said="it parses and imports" if all(path.endswith(".py") for path in made) else "it parses",
    )


def _declared(
    run: Run, job: StepJob, package: ContextPackage, action: Action, pass_id: str
) -> dict[str, str] | str:
    """The texts of the new files as the coder declares them, by path; or why there are none."""
    tree = run.commits.tree()
    run.recorder.observer.notice(PassProgress(doing="declaring what the step adds"))
    tokens = raised_answer_tokens if action.more_room else usual_answer_tokens
    try:
        answer = ask_scaffold(
            run.models,
            package,
            instruction_with_diff(run, job),
            pass_id=pass_id,
            answer_tokens=tokens(run.models.window("coding")),
            tag=action.model,
        )
    except WindowExceeded:
        return "its prompt does not fit the window"
    for name in answer.dropped:
        run.recorder.event(pass_id, EventKind.DROPPED_FROM_PROMPT, name)
    if answer.bad is not None:
        return "its answer was cut off" if answer.truncated else answer.bad.fault
    # What the answer declares in files that exist comes with the bodies: half of it would have to be shown and proven.
    created = tuple(edit for edit in answer.step.edits if edit.kind == "create")
    if not created:
        return "its answer creates no file"
    applied = edited(run, job, package, tree, created)
    if not applied.result.success:
        return describe(applied.result)
    return {path: text for path, text in applied.texts.items() if text is not None}


def _import_fault(run: Run, commit: str, texts: Mapping[str, str]) -> str:
    """Why the scaffold's Python files cannot be imported, "" if they can. The worktree is back at the run's head
    afterwards, since contexts are read from it.
    """
    sources = sorted(path for path in texts if path.endswith(".py"))
    if not sources:
        return ""
    try:
        run.tests.checkout(commit)
        code, said = run.tests.run_apart(import_command(run.tests.commands[-1], sources))
    finally:
        run.tests.checkout(run.commits.head)
    return import_fault(code, said)[0]
