"""Beginning and ending a run: the snapshot, the worktree, what tests need in it, and taking it all down again."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.db.session import Session
from clean_room_agent.errors import BudgetSpent, CraError, Interrupted
from clean_room_agent.git.included import INCLUDE_FILE, included_files
from clean_room_agent.git.repository import Repository
from clean_room_agent.git.snapshot import Snapshot, snapshot
from clean_room_agent.git.worktree import Worktree, add_worktree, remove_worktree
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.orchestrator.chronicle import Chronicle
from clean_room_agent.orchestrator.events import Note, Observer, RunStarted
from clean_room_agent.orchestrator.meter import Meter
from clean_room_agent.orchestrator.ports import ContextPort
from clean_room_agent.orchestrator.run import Progress, Run, RunLimits
from clean_room_agent.orchestrator.shelter import Ground, make_shelter
from clean_room_agent.orchestrator.testbench import TestBench
from clean_room_agent.orchestrator.testing.links import copy_included


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """What wiring hands to a run; every part can be swapped by a test."""

    repo: Repository
    models: ModelClient
    model_lines: tuple[tuple[str, str, int], ...]
    """(role, model tag, window in tokens), for the first line that a person sees."""
    local_only: bool
    """Whether the model server is this machine."""
    session: Session
    chronicle: Chronicle
    observer: Observer
    meter: Meter
    limits: RunLimits
    ground: Ground
    worktree_path: Path
    report: Path
    environment: Mapping[str, str]
    is_secret: Callable[[str], bool]
    open_context: Callable[[Path], ContextPort]
    """Called once, with the worktree's folder."""
    monotonic: Callable[[], float]
    replay_of: str | None = None
    """The snapshot commit to start from again, in a replay; None: take a snapshot."""


@contextlib.contextmanager
def opened_run(task_id: str, task: str, parts: RunParts) -> Iterator[Run]:
    """A run whose worktree holds the snapshot; whatever happens inside, the worktree is gone afterwards.

    When the body raises, the record says how the run ended before the exception goes on.
    """
    started_at = parts.monotonic()
    try:
        taken = _take_snapshot(task_id, parts)
        worktree = add_worktree(parts.repo, taken.commit, parts.worktree_path, task_id)
        try:
            yield _assemble(task_id, task, parts, taken, worktree, started_at)
        finally:
            remove_worktree(worktree)
    except BaseException as error:
        parts.chronicle.ended(status_of(error), reason=_reason_of(error))
        raise


def _take_snapshot(task_id: str, parts: RunParts) -> Snapshot:
    if parts.replay_of is not None:
        taken = Snapshot(
            commit=parts.replay_of, tree="", dirty_tracked=(), untracked=(), excluded=(), reshaped=()
        )
    else:
        taken = snapshot(
            parts.repo,
            task_id,
            secrets=parts.is_secret,
            max_untracked_bytes=parts.limits.orchestrator.max_untracked_bytes,
        )
    account = {"tracked": taken.dirty_tracked, "untracked": taken.untracked, "excluded": taken.excluded}
    parts.chronicle.snapshot_taken(taken.commit, account)
    parts.observer.notice(
        RunStarted(
            task_id=task_id,
            task=parts.chronicle.task,
            models=parts.model_lines,
            local_only=parts.local_only,
            base_commit=taken.commit,
            uncommitted=tuple(sorted({*taken.dirty_tracked, *taken.untracked})),
            excluded=taken.excluded,
        )
    )
    return taken


def _assemble(
    task_id: str, task: str, parts: RunParts, taken: Snapshot, worktree: Worktree, started_at: float
) -> Run:
    shelter = make_shelter(parts.ground, worktree, parts.environment, parts.report)
    included = included_files(parts.repo)
    for text in shelter.told:
        tell(parts.chronicle, parts.observer, task_id, text)
    if included:
        text = f"{INCLUDE_FILE}: {len(included)} ignored file{'s' if len(included) > 1 else ''} copied in for the tests"
        tell(parts.chronicle, parts.observer, task_id, text)
        copy_included(worktree.path, parts.repo.top, included)
    bench = TestBench(
        config=parts.ground.testing,
        worktree=worktree,
        repo_top=parts.repo.top,
        inherited=parts.environment,
        report=parts.report,
        keep=parts.ground.worktree.link,
        observer=parts.observer,
        sandbox=shelter.sandbox,
        included=included,
    )
    context = parts.open_context(worktree.path)
    if taken.excluded:
        # The index describes the user's tree; what the snapshot leaves out is not in the worktree.
        context.refresh(worktree.path, tuple(path for path, _ in taken.excluded))
    return Run(
        task_id=task_id,
        task=task,
        repo=parts.repo,
        base=taken.commit,
        worktree=worktree,
        context=context,
        bench=bench,
        models=parts.models,
        session=parts.session,
        chronicle=parts.chronicle,
        observer=parts.observer,
        meter=parts.meter,
        limits=parts.limits,
        monotonic=parts.monotonic,
        started_at=started_at,
        progress=Progress(head=taken.commit),
    )


def tell(chronicle: Chronicle, observer: Observer, task_id: str, text: str) -> None:
    """The record and whoever watches know `text`."""
    chronicle.event(task_id, "note", text)
    observer.notice(Note(text=text))


def status_of(error: BaseException) -> RunStatus:
    """How a run stands that the error ended."""
    if isinstance(error, KeyboardInterrupt | Interrupted):
        return RunStatus.INTERRUPTED
    return RunStatus.PARTIAL if isinstance(error, BudgetSpent) else RunStatus.FAILED


def _reason_of(error: BaseException) -> str:
    if isinstance(error, CraError):
        return error.message
    return "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
