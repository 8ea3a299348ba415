"""Beginning and ending a run: the snapshot, the worktree, what tests need in it, and taking it all down again."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clean_room_agent.artifacts.event_kinds import EventKind
from clean_room_agent.db.raw.orchestrator_runs import OrchestratorRunRow
from clean_room_agent.db.session import Session
from clean_room_agent.git.generated import generated_in
from clean_room_agent.git.history import changed_paths
from clean_room_agent.git.repository import Repository
from clean_room_agent.git.result_refs import delete_ref, list_refs
from clean_room_agent.git.snapshot import Snapshot, snapshot
from clean_room_agent.git.worktree import (
    Worktree,
    add_worktree,
    remove_leftovers,
    remove_worktree,
    reports_beside,
    worktree_places,
)
from clean_room_agent.git.worktree_include import INCLUDE_FILE, included_files
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.orchestrator.endings import reason_of, status_of
from clean_room_agent.orchestrator.events import Note, Observer, RunStarted
from clean_room_agent.orchestrator.ports import ContextPort
from clean_room_agent.orchestrator.resume.hints import Hint, Hints
from clean_room_agent.orchestrator.resume.interrupts import Interrupts
from clean_room_agent.orchestrator.resume.journal import Journal, seconds_used
from clean_room_agent.orchestrator.resume.kept_context import KeptContext
from clean_room_agent.orchestrator.run import Progress, Run, RunLimits
from clean_room_agent.orchestrator.run_recorder import RunRecorder
from clean_room_agent.orchestrator.sandbox_setup import SandboxInputs, set_up_sandbox
from clean_room_agent.orchestrator.testing.ignored_folders import copy_included
from clean_room_agent.orchestrator.testing.test_bench import TestBench
from clean_room_agent.orchestrator.testing.worktree_pool import Benches
from clean_room_agent.orchestrator.usage_meter import Meter
from clean_room_agent.tree_removal import remove_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """What wiring hands to a run; every part can be swapped by a test."""

    repo: Repository
    models: ModelClient
    model_lines: tuple[tuple[str, str, int], ...]
    """(role, model tag, window in tokens), for the first line that a person sees."""
    remote: str
    """The host that prompts go to; "" where none leaves this machine."""
    session: Session
    recorder: RunRecorder
    observer: Observer
    meter: Meter
    limits: RunLimits
    sandbox_inputs: SandboxInputs
    worktree_path: Path
    report: Path
    environment: Mapping[str, str]
    is_secret: Callable[[str], bool]
    open_context: Callable[[Path], ContextPort]
    """Called once, with the worktree's folder."""
    monotonic: Callable[[], float]
    replay_of: str | None = None
    """The snapshot commit to start from again, in a replay; None: take a snapshot."""
    resumed: OrchestratorRunRow | None = None
    """How the run stood before, where it goes on."""
    hints: tuple[Hint, ...] = ()
    interrupts: Interrupts = field(default_factory=Interrupts)


@contextlib.contextmanager
def opened_run(task_id: str, task: str, parts: RunParts) -> Iterator[Run]:
    """A run whose worktree holds the snapshot; whatever happens inside, the worktree is gone afterwards.

    When the body raises, the record says how the run ended before the exception goes on.
    """
    try:
        with contextlib.ExitStack() as stack:
            with parts.interrupts.shield():
                taken = _take_snapshot(task_id, parts)
                if parts.resumed is not None:
                    for place in worktree_places(parts.worktree_path):
                        remove_leftovers(parts.repo, task_id, place)
                        remove_tree(reports_beside(place))
                worktree = add_worktree(parts.repo, taken.commit, parts.worktree_path, task_id)
                stack.callback(_remove, worktree, parts.report, parts)
            yield _assemble(task_id, task, parts, taken, worktree, stack)
    except BaseException as error:
        with parts.interrupts.closing():
            parts.recorder.ended(status_of(error), reason=reason_of(error))
        raise


def _remove(worktree: Worktree, report: Path, parts: RunParts) -> None:
    with parts.interrupts.closing():
        remove_worktree(worktree)
        with contextlib.suppress(OSError):
            remove_tree(report.parent)


def _take_snapshot(task_id: str, parts: RunParts) -> Snapshot:
    if parts.replay_of is not None:
        taken = Snapshot(
            commit=parts.replay_of, tree="", dirty_tracked=(), untracked=(), excluded=(), reshaped=()
        )
    elif parts.resumed is not None and parts.resumed.snapshot_commit:
        taken = _taken_before(parts.resumed)
    else:
        base = f"refs/cra/{task_id}/base"
        if parts.resumed is not None and base in list_refs(parts.repo, base):
            delete_ref(parts.repo, base)  # the record does not know what is in it, so nothing came of it
        taken = snapshot(
            parts.repo,
            task_id,
            secrets=parts.is_secret,
            max_untracked_bytes=parts.limits.orchestrator.max_untracked_bytes,
        )
    if parts.resumed is None or not parts.resumed.snapshot_commit:
        account = {
            "tracked": taken.dirty_tracked,
            "untracked": taken.untracked,
            "excluded": taken.excluded,
            "absent": taken.absent,
            "reshaped": taken.reshaped,
            "generated": [(folder.path, folder.what) for folder in taken.generated],
        }
        parts.recorder.snapshot_taken(taken.commit, account)
    parts.observer.notice(
        RunStarted(
            task_id=task_id,
            task=parts.recorder.task,
            models=parts.model_lines,
            remote=parts.remote,
            base_commit=taken.commit,
            uncommitted=tuple(sorted({*taken.dirty_tracked, *taken.untracked})),
            excluded=taken.excluded,
            generated=taken.generated,
        )
    )
    for text in _differences(taken):
        tell(parts.recorder, parts.observer, task_id, text)
    return taken


def _differences(taken: Snapshot) -> list[str]:
    """In words, how the worktree differs from what the user sees, beside what the first lines say."""
    said = (
        ("filter drivers do not run here; tests see what is committed (of LFS: pointers)", taken.converted),
        ("other line ends in the worktree than in your tree", taken.reshaped),
        ("left out by your sparse checkout, yet in the worktree", taken.absent),
    )
    return [f"{words}: {_several(paths)}" for words, paths in said if paths]


def _hollow(sandbox_inputs: SandboxInputs, repo: Repository, worktree: Worktree) -> list[str]:
    """In words, the submodules that the user's tree has and the worktree has not."""
    brought = {name.rstrip("/") for name in sandbox_inputs.worktree.link}
    missing = tuple(
        name
        for name in worktree.submodules
        if name not in brought and (repo.top / name).is_dir() and any((repo.top / name).iterdir())
    )
    remedy = "submodules are empty in the worktree; [worktree] link brings them in for the tests"
    return [f"{remedy}: {_several(missing)}"] if missing else []


def _several(paths: tuple[str, ...]) -> str:
    return paths[0] if len(paths) == 1 else f"{len(paths)} ({paths[0]}, ...)"


def _taken_before(run: OrchestratorRunRow) -> Snapshot:
    account = json.loads(run.snapshot)
    return Snapshot(
        commit=run.snapshot_commit,
        tree="",
        dirty_tracked=tuple(account["tracked"]),
        untracked=tuple(account["untracked"]),
        excluded=tuple((path, reason) for path, reason in account["excluded"]),
        reshaped=tuple(account.get("reshaped", ())),
        absent=tuple(account.get("absent", ())),
        generated=generated_in(run.snapshot),
    )


def _assemble(
    task_id: str, task: str, parts: RunParts, taken: Snapshot, worktree: Worktree, stack: contextlib.ExitStack
) -> Run:
    bench, told = _bench(parts, worktree, taken.commit, parts.report)
    for text in told:
        tell(parts.recorder, parts.observer, task_id, text)

    def add_bench(number: int) -> TestBench:
        with parts.interrupts.shield():
            place = worktree_places(parts.worktree_path)[number - 1]
            more = add_worktree(parts.repo, taken.commit, place, task_id)
            # A folder of its own: what runs for one candidate must not reach the results of another.
            report = reports_beside(place) / parts.report.name
            stack.callback(_remove, more, report, parts)
        return _bench(parts, more, taken.commit, report)[0]

    context = parts.open_context(worktree.path)
    if not context.described():
        # The index describes the user's tree: the worktree lacks what the snapshot leaves out, and has other line ends.
        left_out = (path for path, _ in taken.excluded)
        context.refresh(worktree.path, (*left_out, *taken.reshaped), taken.commit)
    head = f"refs/cra/{task_id}/head"
    progress = Progress(head=taken.commit, kept_head=list_refs(parts.repo, head).get(head, ""))
    started_at = parts.monotonic() - seconds_used(parts.session)
    journal = Journal(
        parts.session,
        resumed=parts.resumed is not None,
        seconds=lambda: parts.monotonic() - started_at,
    )

    def get_ready() -> None:
        with parts.interrupts.shield():
            bench.checkout(progress.head)
            described = context.described()
            if described != progress.head:
                changed = changed_paths(parts.repo, described, progress.head)
                context.refresh(worktree.path, tuple(each.path for each in changed), progress.head)

    return Run(
        task_id=task_id,
        task=task,
        repo=parts.repo,
        base=taken.commit,
        worktree=worktree,
        context=KeptContext(context, journal, get_ready),
        bench=bench,
        benches=Benches(bench, add_bench),
        models=parts.models,
        session=parts.session,
        recorder=parts.recorder,
        observer=parts.observer,
        meter=parts.meter,
        limits=parts.limits,
        monotonic=parts.monotonic,
        started_at=started_at,
        progress=progress,
        journal=journal,
        hints=Hints(parts.hints),
        interrupts=parts.interrupts,
    )


def _bench(
    parts: RunParts, worktree: Worktree, commit: str, report: Path
) -> tuple[TestBench, tuple[str, ...]]:
    return open_bench(
        parts.sandbox_inputs,
        parts.repo,
        worktree,
        commit=commit,
        report=report,
        environment=parts.environment,
        observer=parts.observer,
    )


def open_bench(
    sandbox_inputs: SandboxInputs,
    repo: Repository,
    worktree: Worktree,
    *,
    commit: str,
    report: Path,
    environment: Mapping[str, str],
    observer: Observer,
) -> tuple[TestBench, tuple[str, ...]]:
    """The place where tests run, in the worktree, which holds `commit`; and what a person is to know of it."""
    sandbox_setup = set_up_sandbox(sandbox_inputs, worktree, environment, report)
    included = included_files(repo)
    told = [*sandbox_setup.told, *_hollow(sandbox_inputs, repo, worktree)]
    if included:
        several = "s" if len(included) > 1 else ""
        told.append(f"{INCLUDE_FILE}: {len(included)} ignored file{several} copied in for the tests")
        copy_included(worktree.path, repo.top, included)
    bench = TestBench(
        config=sandbox_inputs.testing,
        worktree=worktree,
        repo_top=repo.top,
        inherited=environment,
        report=report,
        keep=sandbox_setup.copies.brought if sandbox_setup.copies else (),
        observer=observer,
        sandbox=sandbox_setup.sandbox,
        included=included,
        copies=sandbox_setup.copies,
        clean_at=commit,
    )
    return bench, tuple(told)


@contextlib.contextmanager
def opened_bench(
    sandbox_inputs: SandboxInputs,
    repo: Repository,
    commit: str,
    *,
    place: Path,
    task_id: str,
    environment: Mapping[str, str],
    observer: Observer,
) -> Iterator[tuple[TestBench, tuple[str, ...]]]:
    """As `open_bench`, in a worktree of its own at `place`, which is gone afterwards: for tests outside of a run.

    Raises:
        ConfigError: there can be no sandbox, and one is wanted.
        GitError: there can be no work tree.
    """
    worktree = add_worktree(repo, commit, place, task_id)
    report = reports_beside(place) / "results.xml"
    try:
        yield open_bench(
            sandbox_inputs,
            repo,
            worktree,
            commit=commit,
            report=report,
            environment=environment,
            observer=observer,
        )
    finally:
        remove_worktree(worktree)
        with contextlib.suppress(OSError):
            remove_tree(report.parent)


def tell(recorder: RunRecorder, observer: Observer, task_id: str, text: str) -> None:
    """The record and whoever watches know `text`."""
    recorder.event(task_id, EventKind.NOTE, text)
    observer.notice(Note(text=text))
