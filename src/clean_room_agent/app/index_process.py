"""The process that writes a run's indexes: the run neither waits for it sooner than it must, nor imports the indexer."""

import contextlib
import threading
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.progress import Progress
from clean_room_agent.artifacts.time_kinds import TimeKind
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.curated import index_state
from clean_room_agent.indexer.config import IndexConfig
from clean_room_agent.indexer.workers import Channel, WorkerPool
from clean_room_agent.orchestrator.time_log import Timed, untimed
from clean_room_agent.workspace import Workspace

DONE = "done"
"""The last message of a job; those before it are files done, and of how many."""
RUN_COMMIT_KEY = "run_commit"
"""In a run's copy: which commit of the run it describes."""


class Job(Protocol):
    """What the process can be asked to do. It imports what it needs when it runs: in that process alone."""

    def run(self, progress: Progress) -> None:
        """Do it.

        Raises:
            IndexingError: a file cannot be read.
        """


@dataclass(frozen=True, slots=True)
class Refresh:
    """The repository's index is up to date, with a row in its record."""

    workspace: Workspace
    bounds: IndexConfig

    def run(self, progress: Progress) -> None:
        """See the class."""
        from clean_room_agent.app.indexing import index_recorded, processors
        from clean_room_agent.db.raw.indexing import append_index_run
        from clean_room_agent.db.raw.single_event import write_event
        from clean_room_agent.indexer.build import index_repository

        repo = self.workspace.repo
        index_recorded(
            repo,
            partial(index_repository, repo, config=self.bounds, jobs=processors(), progress=progress),
            note=lambda row, generated: write_event(repo, append_index_run, row, generated),
            now=utc_now,
        )


@dataclass(frozen=True, slots=True)
class IndexTree:
    """The work tree at `top` has an index, which no record tells of."""

    top: Path
    bounds: IndexConfig

    def run(self, progress: Progress) -> None:
        """See the class."""
        from clean_room_agent.app.indexing import processors
        from clean_room_agent.indexer.build import index_repository

        index_repository(self.top, config=self.bounds, jobs=processors(), progress=progress)


@dataclass(frozen=True, slots=True)
class Follow:
    """The database says what `paths` hold below `root`, and that it describes `commit`."""

    database: Path
    root: Path
    paths: tuple[str, ...]
    commit: str

    def run(self, progress: Progress) -> None:  # noqa: ARG002 - the files of a step are soon read
        """See the class."""
        with contextlib.closing(connect_file("curated", self.database)) as conn:
            if self.paths:
                from clean_room_agent.indexer.update import update_paths

                update_paths(conn, self.root, self.paths)
            # Later than the change: a copy that names the commit holds it, whatever a power cut took.
            index_state.put_state(conn, RUN_COMMIT_KEY, self.commit)


class IndexProcess:
    """Does one job after the other; it ends with the block, or with this process.

    It is forked, so it must be made before this process has threads.
    """

    def __init__(self, first: Job | None = None, timed: Timed = untimed) -> None:
        """`first` begins at once, whoever waits for it, and is timed."""
        self._timed = timed
        self._pool = WorkerPool(1, tasks=0, body=partial(_serve, first))
        self._progress: Progress | None = None
        """Who waits, and is to be told how far it is."""
        self._error: Exception | None = None
        self._listener = threading.Thread(target=self._listen, daemon=True) if first is not None else None
        if self._listener is not None:
            self._listener.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._pool:
            self._pool.kill()
            if self._listener is not None:
                self._listener.join()

    def wait(self, progress: Progress) -> None:
        """The first job is done; `progress` is called meanwhile with files done, and of how many.

        Raises:
            IndexingError: a file cannot be read.
            Whatever else the job raised.
        """
        self._progress = progress
        if self._listener is not None:
            self._listener.join()
        if self._error is not None:
            raise self._error

    def do(self, job: Job, progress: Progress) -> None:
        """The job is done, after those before it.

        Raises:
            IndexingError: a file cannot be read.
            Whatever else the job raised.
        """
        self.wait(progress)
        self._pool.tell(job)
        for done, total in self._pool.messages(DONE):
            progress(done, total)

    def _listen(self) -> None:
        try:
            with self._timed(TimeKind.INDEX):
                for done, total in self._pool.messages(DONE):
                    if self._progress is not None:
                        self._progress(done, total)
        except Exception as error:  # noqa: BLE001 - it is raised where somebody waits
            self._error = error


def _serve(first: Job | None, channel: Channel) -> None:
    job: Job = first or channel.wait()
    while True:
        job.run(lambda done, total: channel.send((done, total)))
        channel.send(DONE)
        job = channel.wait()
