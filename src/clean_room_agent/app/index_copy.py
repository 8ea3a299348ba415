"""A run's own copy of the index: creates it, keeps it up to date with the run's commits, and deletes it."""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from clean_room_agent.app.indexing import processors
from clean_room_agent.app.progress import Progress
from clean_room_agent.app.wiring import (
    RecordedState,
    Services,
    cache_folder,
    recorded_state,
    refresh_index,
    retriever_over,
)
from clean_room_agent.artifacts.event_kinds import EventKind
from clean_room_agent.artifacts.ids import short_id
from clean_room_agent.db.connection import backup, connect_file, is_sound
from clean_room_agent.db.curated import files, index_state, metadata
from clean_room_agent.db.raw.enrichment import get_descriptions, list_descriptions
from clean_room_agent.db.raw.events import EventRow, append_event_once, list_events
from clean_room_agent.db.rows import Connection
from clean_room_agent.enrichment.promotion import promote
from clean_room_agent.git.repository import Repository
from clean_room_agent.git.worktree import add_worktree, remove_leftovers, remove_worktree, stand_on
from clean_room_agent.indexer.build import index_repository
from clean_room_agent.indexer.update import update_paths
from clean_room_agent.orchestrator.events import IndexProgress, Observer
from clean_room_agent.trust import forget
from clean_room_agent.workspace import Workspace, private_folder

RUN_COMMIT_KEY = "run_commit"
"""In the copy: which commit of the run it describes."""


@contextlib.contextmanager
def index_for_run(
    services: Services, repo: Repository, task_id: str, replay_of: RecordedState | None, observer: Observer
) -> Iterator[Path]:
    """A run's own copy of the curated database; it stays until the task ends.

    It is a copy of the repository's, refreshed first. For a replay it is built anew from the recorded snapshot, because
    files and history may have gone on since; so it is for a resumed run whose copy is gone or damaged.
    """
    progress = index_progress(observer)
    path = services.workspace.run_copy(task_id)
    began = _began_with(services)
    if replay_of is not None:
        _index_recorded(services, repo, task_id, replay_of, path, progress)
        _describe_as(services, replay_of.task_id, path)
    elif began is None:
        refresh_index(services.workspace, services.settings, services.record, progress=progress)
        with contextlib.closing(
            connect_file("curated", services.workspace.curated, read_only=True)
        ) as source:
            backup(source, path)
    elif not is_sound("curated", path):
        _index_recorded(services, repo, task_id, began, path, progress)
        _describe_as(services, task_id, path)
    _note_descriptions(services, task_id, path)
    yield path


def _began_with(services: Services) -> RecordedState | None:
    """The index that a resumed run began with; None for a new run, or one that had none yet."""
    run = services.resumed
    if run is None or not run.snapshot_commit:
        return None
    return recorded_state(run)


def _index_recorded(
    services: Services, repo: Repository, task_id: str, state: RecordedState, target: Path, progress: Progress
) -> None:
    """`target` is an index of the recorded snapshot's files with the history that HEAD had then."""
    where = private_folder(services.workspace.worktrees(cache_folder())) / f"{short_id(task_id)}-index"
    remove_leftovers(repo, task_id, where)
    worktree = add_worktree(repo, state.snapshot, where, task_id)
    try:
        stand_on(worktree, state.head)
        for path in state.absent:
            (where / path).unlink(missing_ok=True)
        index_repository(where, config=services.settings.index, jobs=processors(), progress=progress)
        built = Workspace(repo=where).curated
        with contextlib.closing(connect_file("curated", built, read_only=True)) as source:
            backup(source, target)
    finally:
        forget(Workspace(repo=where).folder)
        remove_worktree(worktree)


def _describe_as(services: Services, task_id: str, target: Path) -> None:
    """The files of `target` have the descriptions that those of the task's index had."""
    ids = {
        number
        for event in services.record.write(list_events, task_id)
        if event.kind == EventKind.DESCRIBED_BY
        for number in json.loads(event.detail)
    }
    if ids:
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


class IndexCopy:
    """The `RunIndex` of a run."""

    def __init__(self, services: Services, reading: Connection, writing: Connection, root: Path) -> None:
        """`reading` is read-only; both are connections to the copy. `root` is the folder of the run's worktree."""
        self._services = services
        self._reading = reading
        self._writing = writing
        self._root = root
        self.source = retriever_over(services, reading, root)
        """A retriever knows one state of the index: there is a new one after each refresh."""

    def refresh(self, root: Path, paths: Sequence[str], commit: str) -> None:
        """The copy says what `paths` hold in the worktree, and describes `commit`."""
        if paths:
            update_paths(self._writing, root, paths)
        # Later than the change: a copy that names the commit holds it, whatever a power cut took.
        index_state.put_state(self._writing, RUN_COMMIT_KEY, commit)
        self.source = retriever_over(self._services, self._reading, self._root)

    def described(self) -> str:
        """The commit of the run that the copy describes; "" before the first refresh."""
        return index_state.get_state(self._writing, RUN_COMMIT_KEY) or ""


def index_progress(observer: Observer) -> Callable[[int, int], None]:
    """A progress callback for an index run that reports to `observer`."""
    return lambda done, total: observer.notice(IndexProgress(done=done, total=total))
