"""A run's own index: a copy of the repository's, which follows the run's commits, and the process that writes both. The
run waits for that process as late as possible, and does not import the indexer.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Self

from clean_room_agent.app.indexing import index_recorded, processors
from clean_room_agent.app.wiring import Services, cache_folder, retriever_over, worktree_place
from clean_room_agent.artifacts.names import short_id
from clean_room_agent.artifacts.outcomes import EventKind, TimeKind
from clean_room_agent.db.connection import backup, connect_file, is_sound_index
from clean_room_agent.db.curated import files, metadata
from clean_room_agent.db.raw.indexing import get_descriptions, list_descriptions
from clean_room_agent.db.raw.runs import EventRow, OrchestratorRunRow, append_event_once, list_events
from clean_room_agent.db.rows import Connection
from clean_room_agent.enrichment.describe import promote
from clean_room_agent.git.repository import Repository
from clean_room_agent.git.worktree import add_worktree, remove_leftovers, remove_worktree, stand_on
from clean_room_agent.indexer.build import index_repository
from clean_room_agent.indexer.index_config import IndexConfig
from clean_room_agent.indexer.update import update_paths
from clean_room_agent.indexer.workers import Channel, WorkerPool
from clean_room_agent.orchestrator.events import IndexProgress, Observer
from clean_room_agent.orchestrator.spending import Timed, untimed
from clean_room_agent.retrieval.retriever import Retriever
from clean_room_agent.workspace import CACHE_HINT, Workspace, forget, private_folder

Progress = Callable[[int, int], None]
"""Called with the number of files done, and the number of files."""
DONE = "done"
"""The last message of a job; earlier ones are (files done, number of files)."""
RUN_COMMIT_KEY = "run_commit"
"""The key, in a run's copy, of the commit of the run that it describes."""


IndexJob = Callable[[Progress], None]
"""A job for the process: a function of this module with its arguments. It imports what it needs when it runs, so only there."""


def refresh_for_run(workspace: Workspace, bounds: IndexConfig, task_id: str, progress: Progress) -> None:
    """Bring the repository's index up to date, record that, and copy it for the run.

    Raises:
        IndexingError: a file cannot be read.
    """
    index_recorded(
        workspace.repo,
        partial(index_repository, workspace.repo, config=bounds, jobs=processors(), progress=progress),
    )
    with contextlib.closing(connect_file("curated", workspace.curated, read_only=True)) as source:
        backup(source, workspace.run_copy(task_id))


def index_tree(top: Path, bounds: IndexConfig, progress: Progress) -> None:
    """Index the worktree at `top`, without recording it.

    Raises:
        IndexingError: a file cannot be read.
    """
    index_repository(top, config=bounds, jobs=processors(), progress=progress)


def index_commit(database: Path, root: Path, paths: Sequence[str], commit: str, _progress: Progress) -> None:
    """Index the present contents of `paths` below `root`, and note that the database describes `commit`.

    Raises:
        IndexingError: a file cannot be read.
    """
    with contextlib.closing(connect_file("curated", database)) as conn:
        if paths:
            update_paths(conn, root, paths)
        # Later than the change: a copy that names the commit holds it, whatever a power cut took.
        files.put_index_state(conn, RUN_COMMIT_KEY, commit)


class IndexProcess:
    """Does one job after the other; it ends with the block, or with this process. It is forked, so it must be created
    before this process has threads.
    """

    def __init__(self, first: IndexJob | None = None, timed: Timed = untimed) -> None:
        """`first` begins at once, and is timed."""
        self._timed = timed
        self._pool = WorkerPool(1, tasks=0, body=partial(_run_index_jobs, first))
        self._progress: Progress | None = None
        """Who waits, and is to be told how far it is."""
        self._error: Exception | None = None
        self._listener = (
            threading.Thread(target=self._listen_for_progress, daemon=True) if first is not None else None
        )
        if self._listener is not None:
            self._listener.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._pool:
            self._pool.kill()
            if self._listener is not None:
                self._listener.join()

    def wait(self, progress: Progress) -> None:
        """Wait for the first job; `progress` is called meanwhile.

        Raises:
            IndexingError: a file cannot be read.
            Whatever else the job raised.
        """
        self._progress = progress
        if self._listener is not None:
            self._listener.join()
        if self._error is not None:
            raise self._error

    def do(self, job: IndexJob, progress: Progress) -> None:
        """Do the job, after earlier ones.

        Raises:
            IndexingError: a file cannot be read.
            Whatever else the job raised.
        """
        self.wait(progress)
        self._pool.tell(job)
        for done, total in self._pool.messages(DONE):
            progress(done, total)

    def _listen_for_progress(self) -> None:
        try:
            with self._timed(TimeKind.INDEX):
                for done, total in self._pool.messages(DONE):
                    if self._progress is not None:
                        self._progress(done, total)
        except Exception as error:  # noqa: BLE001 - it is raised where somebody waits
            self._error = error


def _run_index_jobs(first: IndexJob | None, channel: Channel) -> None:
    job: IndexJob = first or channel.wait()
    while True:
        job(lambda done, total: channel.send((done, total)))
        channel.send(DONE)
        job = channel.wait()


class IndexCopy:
    """The `RunIndex` of a run: its own copy of the curated database, kept until the task ends.

    It is a copy of the repository's, refreshed first. For a replay it is rebuilt from the recorded snapshot, because
    files and history may have changed since; likewise for a resumed run whose copy is missing or damaged.
    """

    def __init__(
        self,
        services: Services,
        repo: Repository,
        task_id: str,
        observer: Observer,
        process: IndexProcess,
        *,
        replay_of: OrchestratorRunRow | None = None,
    ) -> None:
        """`process` writes it; for a new run, that is already bringing the repository's index up to date."""
        self._services = services
        self._repo = repo
        self._task_id = task_id
        self._progress = index_progress(observer)
        self._process = process
        self._replay_of = replay_of
        self._connections = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connections.close()

    @cached_property
    def source(self) -> Retriever:
        """A retriever over the index as it is now. It knows one state of the index, so a refresh replaces it."""
        services = self._services
        root = worktree_place(services.workspace, services.settings, self._task_id)
        return retriever_over(services, self._read_connection, root)

    def refresh(self, root: Path, paths: Sequence[str], commit: str) -> None:
        """Index the present contents of `paths` in the worktree; the copy then describes `commit`."""
        self._process.do(partial(index_commit, self._copy_path, root, tuple(paths), commit), self._progress)
        self.__dict__.pop("source", None)

    def described(self) -> str:
        """The commit of the run that the copy describes; "" before the first refresh."""
        return files.get_index_state(self._read_connection, RUN_COMMIT_KEY) or ""

    @cached_property
    def _copy_path(self) -> Path:
        """The path of the copy, which exists afterwards."""
        path = self._services.workspace.run_copy(self._task_id)
        resumed = self._services.resumed
        if self._replay_of is not None:
            self._index_recorded(self._replay_of, path)
            _describe_as(self._services, self._replay_of.task_id, path)
        elif resumed is None or not resumed.snapshot_commit:
            self._copy_refreshed(path)
        elif not is_sound_index(path):
            self._index_recorded(resumed, path)
            _describe_as(self._services, self._task_id, path)
        _note_descriptions(self._services, self._task_id, path)
        return path

    @cached_property
    def _read_connection(self) -> Connection:
        return self._connections.enter_context(
            contextlib.closing(connect_file("curated", self._copy_path, read_only=True))
        )

    def _copy_refreshed(self, target: Path) -> None:
        self._process.wait(self._progress)
        # A resumed run begins without that job; and before the run has its lock, another command may clear up.
        if self._services.resumed is not None or not target.exists():
            services = self._services
            job = partial(refresh_for_run, services.workspace, services.settings.index, self._task_id)
            self._process.do(job, self._progress)

    def _index_recorded(self, run: OrchestratorRunRow, target: Path) -> None:
        """Make `target` an index of the run's snapshot, without files that its tree did not show, with the history that HEAD had."""
        workspace = self._services.workspace
        where = (
            private_folder(workspace.worktrees(cache_folder()), hint=CACHE_HINT)
            / f"{short_id(self._task_id)}-index"
        )
        remove_leftovers(self._repo, self._task_id, where)
        worktree = add_worktree(self._repo, run.snapshot_commit, where, self._task_id)
        try:
            stand_on(worktree, run.base_commit)
            for path in json.loads(run.snapshot).get("absent", ()) if run.snapshot else ():
                (where / path).unlink(missing_ok=True)
            self._process.do(partial(index_tree, where, self._services.settings.index), self._progress)
            built = Workspace(repo=where).curated
            with contextlib.closing(connect_file("curated", built, read_only=True)) as source:
                backup(source, target)
        finally:
            forget(Workspace(repo=where).folder)
            remove_worktree(worktree)


def _describe_as(services: Services, task_id: str, target: Path) -> None:
    """Give the files of `target` the descriptions that those of the task's index had."""
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
    """Record which descriptions the files of the index at `path` have."""
    with contextlib.closing(connect_file("curated", path, read_only=True)) as copy:
        described = {row.file_id for row in metadata.list_metadata(copy)}
        contents = {(file.path, file.content_hash) for file in files.list_files(copy) if file.id in described}
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
