"""A run's own copy of the index: creates it, keeps it up to date with the run's commits, and deletes it."""

import contextlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from clean_room_agent.app.index_process import RUN_COMMIT_KEY, Follow, IndexProcess, IndexTree, Refresh
from clean_room_agent.app.progress import Progress
from clean_room_agent.app.wiring import (
    RecordedState,
    Services,
    cache_folder,
    recorded_state,
    retriever_over,
    worktree_place,
)
from clean_room_agent.artifacts.names import short_id
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.db.connection import backup, connect_file, is_sound
from clean_room_agent.db.curated import files, index_state, metadata
from clean_room_agent.db.raw.indexing import get_descriptions, list_descriptions
from clean_room_agent.db.raw.runs import EventRow, append_event_once, list_events
from clean_room_agent.db.rows import Connection
from clean_room_agent.git.repository import Repository
from clean_room_agent.git.worktree import add_worktree, remove_leftovers, remove_worktree, stand_on
from clean_room_agent.orchestrator.events import IndexProgress, Observer
from clean_room_agent.retrieval.retriever import Retriever
from clean_room_agent.trust import forget
from clean_room_agent.workspace import Workspace, private_folder


class IndexCopy:
    """The `RunIndex` of a run: its own copy of the curated database, made when it is first asked for, kept until the task ends.

    It is a copy of the repository's, refreshed first. For a replay it is built anew from the recorded snapshot, because
    files and history may have gone on since; so it is for a resumed run whose copy is gone or damaged.
    """

    def __init__(
        self,
        services: Services,
        repo: Repository,
        task_id: str,
        observer: Observer,
        process: IndexProcess,
        *,
        replay_of: RecordedState | None = None,
    ) -> None:
        """`process` writes it; for a new run, it has begun to bring the repository's index up to date."""
        self._services = services
        self._repo = repo
        self._task_id = task_id
        self._progress = index_progress(observer)
        self._process = process
        self._replay_of = replay_of
        self._connections = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connections.close()

    @cached_property
    def source(self) -> Retriever:
        """Makes contexts from the index as it is now; a retriever knows one state of it, so a refresh takes it away."""
        services = self._services
        root = worktree_place(services.workspace, services.settings, self._task_id)
        return retriever_over(services, self._reading, root)

    def refresh(self, root: Path, paths: Sequence[str], commit: str) -> None:
        """The copy says what `paths` hold in the worktree, and describes `commit`."""
        self._process.do(Follow(self._path, root, tuple(paths), commit), self._progress)
        self.__dict__.pop("source", None)

    def described(self) -> str:
        """The commit of the run that the copy describes; "" before the first refresh."""
        return index_state.get_state(self._reading, RUN_COMMIT_KEY) or ""

    @cached_property
    def _path(self) -> Path:
        """The copy, which is there."""
        path = self._services.workspace.run_copy(self._task_id)
        began = _began_with(self._services)
        if self._replay_of is not None:
            self._index_recorded(self._replay_of, path)
            _describe_as(self._services, self._replay_of.task_id, path)
        elif began is None:
            self._copy_refreshed(path)
        elif not is_sound("curated", path):
            self._index_recorded(began, path)
            _describe_as(self._services, self._task_id, path)
        _note_descriptions(self._services, self._task_id, path)
        return path

    @cached_property
    def _reading(self) -> Connection:
        return self._connections.enter_context(
            contextlib.closing(connect_file("curated", self._path, read_only=True))
        )

    def _copy_refreshed(self, target: Path) -> None:
        if self._services.resumed is None:
            self._process.wait(self._progress)
        else:
            self._process.do(Refresh(self._services.workspace, self._services.settings.index), self._progress)
        with contextlib.closing(
            connect_file("curated", self._services.workspace.curated, read_only=True)
        ) as source:
            backup(source, target)

    def _index_recorded(self, state: RecordedState, target: Path) -> None:
        """`target` is an index of the recorded snapshot's files with the history that HEAD had then."""
        workspace = self._services.workspace
        where = private_folder(workspace.worktrees(cache_folder())) / f"{short_id(self._task_id)}-index"
        remove_leftovers(self._repo, self._task_id, where)
        worktree = add_worktree(self._repo, state.snapshot, where, self._task_id)
        try:
            stand_on(worktree, state.head)
            for path in state.absent:
                (where / path).unlink(missing_ok=True)
            config = self._services.settings.index
            self._process.do(IndexTree(where, config), self._progress)
            built = Workspace(repo=where).curated
            with contextlib.closing(connect_file("curated", built, read_only=True)) as source:
                backup(source, target)
        finally:
            forget(Workspace(repo=where).folder)
            remove_worktree(worktree)


def _began_with(services: Services) -> RecordedState | None:
    """The index that a resumed run began with; None for a new run, or one that had none yet."""
    run = services.resumed
    if run is None or not run.snapshot_commit:
        return None
    return recorded_state(run)


def _describe_as(services: Services, task_id: str, target: Path) -> None:
    """The files of `target` have the descriptions that those of the task's index had."""
    ids = {
        number
        for event in services.record.write(list_events, task_id)
        if event.kind == EventKind.DESCRIBED_BY
        for number in json.loads(event.detail)
    }
    if ids:
        from clean_room_agent.enrichment.promotion import promote

        with contextlib.closing(connect_file("curated", target)) as copy:
            promote(copy, services.record.write(get_descriptions, ids))


def _note_descriptions(services: Services, task_id: str, path: Path) -> None:
    """The record knows by which descriptions the files of the index at `path` are described."""
    with contextlib.closing(connect_file("curated", path, read_only=True)) as copy:
        described = {row.file_id for row in metadata.list_metadata(copy)}
        contents = {
            (stamp.path, stamp.content_hash) for stamp in files.list_stamps(copy) if stamp.id in described
        }
    if not contents:
        return
    known = services.record.write(list_descriptions)
    ids = sorted(row.id for row in known if (row.path, row.content_hash) in contents)
    event = EventRow(
        task_id=task_id, kind=EventKind.DESCRIBED_BY, detail=json.dumps(ids), timestamp=services.record.now()
    )
    services.record.write(append_event_once, event)


def index_progress(observer: Observer) -> Progress:
    """A progress callback for an index run that reports to `observer`."""
    return lambda done, total: observer.notice(IndexProgress(done=done, total=total))
