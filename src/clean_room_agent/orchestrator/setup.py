"""Sets a run up and tears it down: takes the snapshot, creates the worktree, assembles the parts, removes the worktree."""

import contextlib
import json
from collections.abc import Iterator

from msgspec import Struct

from clean_room_agent.artifacts.outcomes import TimeKind, reason_of, status_of
from clean_room_agent.db.raw.runs import OrchestratorRunRow
from clean_room_agent.git.commits import Snapshot, snapshot
from clean_room_agent.git.generated import generated_in
from clean_room_agent.git.refs import delete_ref, list_refs
from clean_room_agent.git.repository import Repository
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.orchestrator.commits import RunCommits
from clean_room_agent.orchestrator.events import RunStarted
from clean_room_agent.orchestrator.journal import Journal
from clean_room_agent.orchestrator.run import Progress, Run, RunContext, RunIndex
from clean_room_agent.orchestrator.task import Task
from clean_room_agent.orchestrator.test_runs.worktrees import WorktreePool, several
from clean_room_agent.paths import is_secret_name


class RunParts(Struct, frozen=True, kw_only=True):
    """What wiring hands to a run; every part can be swapped by a test."""

    task: Task
    repo: Repository
    replay_of: str | None = None
    """The snapshot commit of the replayed run; None: take a new snapshot."""
    resumed: OrchestratorRunRow | None = None
    """The run's row from before, if it is resumed."""
    models: ModelClient
    model_lines: tuple[tuple[str, str, int], ...]
    """(role, model tag, window in tokens) of each, for the first lines."""
    remote: str
    """The remote host that prompts go to; "" if none leaves this machine."""
    index: RunIndex
    journal: Journal
    worktrees: WorktreePool


@contextlib.contextmanager
def opened_run(parts: RunParts) -> Iterator[Run]:
    """A run whose worktree is at the snapshot; whatever happens inside, the worktree is removed afterwards.

    If the body raises, the run's end is recorded before the exception is passed on.
    """
    journal = parts.journal
    try:
        with parts.worktrees:
            with journal.interrupts.shield():
                taken = _take_snapshot(parts)
                parts.worktrees.open(taken.commit, resumed=parts.resumed is not None)
            yield _assemble_run(parts, taken)
    except BaseException as error:
        with journal.interrupts.shield(is_last=True):
            journal.recorder.ended(status_of(error), reason=reason_of(error))
        raise


def _assemble_run(parts: RunParts, taken: Snapshot) -> Run:
    journal, runner = parts.journal, parts.worktrees.first
    for text in parts.worktrees.notes:
        journal.recorder.note(text)
    commits = RunCommits(
        parts.repo,
        parts.task.task_id,
        taken.commit,
        journal.interrupts,
        journal.recorder.timed,
        only=parts.task.given.files,
    )
    return Run(
        task=parts.task,
        commits=commits,
        worktrees=parts.worktrees,
        context=RunContext(
            index=parts.index,
            journal=journal,
            commits=commits,
            runner=runner,
            unlike=taken.unlike_the_tree(),  # which is what the index describes
        ),
        models=parts.models,
        journal=journal,
        progress=Progress(),
    )


def _take_snapshot(parts: RunParts) -> Snapshot:
    recorder = parts.journal.recorder
    known = parts.resumed is not None and bool(parts.resumed.snapshot_commit)
    with recorder.timed(TimeKind.GIT, "snapshot"):
        taken = _starting_snapshot(parts)
    if not known:
        account = {
            "tracked": taken.dirty_tracked,
            "untracked": taken.untracked,
            "excluded": taken.excluded,
            "absent": taken.absent,
            "encoded": taken.encoded,
            "generated": [(folder.path, folder.what) for folder in taken.generated],
        }
        recorder.snapshot_taken(taken.commit, account)
    recorder.observer.notice(
        RunStarted(
            task_id=parts.task.task_id,
            task=parts.task.description,
            models=parts.model_lines,
            remote=parts.remote,
            base_commit=taken.commit,
            uncommitted=tuple(sorted({*taken.dirty_tracked, *taken.untracked})),
            excluded=taken.excluded,
            generated=taken.generated,
        )
    )
    for text in differences(taken):
        recorder.note(text)
    return taken


def _starting_snapshot(parts: RunParts) -> Snapshot:
    """The recorded snapshot of a replay or a resumed run; otherwise a new one."""
    repo, resumed, task_id = parts.repo, parts.resumed, parts.task.task_id
    if parts.replay_of is not None:
        return Snapshot(commit=parts.replay_of)
    if resumed is not None and resumed.snapshot_commit:
        return recorded_snapshot(resumed)
    for ref in list_refs(repo, f"refs/cra/{task_id}/"):
        delete_ref(repo, ref)  # no record knows what is in it, so nothing came of it
    return snapshot(
        repo,
        task_id,
        secrets=is_secret_name,
        max_untracked_bytes=parts.task.limits.orchestrator.max_untracked_bytes,
    )


def recorded_snapshot(run: OrchestratorRunRow) -> Snapshot:
    """The snapshot as the record describes it."""
    account = json.loads(run.snapshot)
    return Snapshot(
        commit=run.snapshot_commit,
        dirty_tracked=tuple(account["tracked"]),
        untracked=tuple(account["untracked"]),
        excluded=tuple((path, reason) for path, reason in account["excluded"]),
        absent=tuple(account.get("absent", ())),
        encoded=tuple(account.get("encoded", ())),
        generated=generated_in(run.snapshot),
    )


def differences(taken: Snapshot) -> list[str]:
    """In words, how the worktree differs from what the user sees, apart from what the first lines say."""
    said = (
        ("filter drivers do not run here; tests see what is committed (of LFS: pointers)", taken.converted),
        ("git converts their encoding, so they are neither shown to models nor edited", taken.encoded),
        ("left out by your sparse checkout, but present in the worktree", taken.absent),
    )
    return [f"{words}: {several(paths)}" for words, paths in said if paths]
