"""An index run in a process of its own: the snapshot, the worktree and the tests before need not wait for it."""

import threading
from functools import partial
from types import TracebackType
from typing import Self

from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.indexing import index_recorded, processors
from clean_room_agent.app.progress import Progress
from clean_room_agent.db.raw.index_runs import append_index_run
from clean_room_agent.db.raw.single_event import write_event
from clean_room_agent.indexer.bounds import Bounds
from clean_room_agent.indexer.build import index_repository
from clean_room_agent.indexer.workers import Channel, WorkerPool
from clean_room_agent.workspace import Workspace

DONE = "done"
"""The last message; those before it are files done, and of how many."""


class BackgroundIndex:
    """Brings a repository's index up to date from the moment it is made; the process ends with the block, or with this one.

    It is forked, so it must be made before this process has threads.
    """

    def __init__(self, workspace: Workspace, bounds: Bounds) -> None:
        workspace.create()
        self._pool = WorkerPool(1, tasks=0, body=partial(_refresh, workspace, bounds))
        self._progress: Progress | None = None
        """Who waits, and is to be told how far it is."""
        self._error: Exception | None = None
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._pool:
            self._pool.kill()
            self._listener.join()

    def wait(self, progress: Progress) -> None:
        """The index is up to date; `progress` is called meanwhile.

        Raises:
            IndexingError: a file cannot be read.
            Whatever else the index run raised.
        """
        self._progress = progress
        self._listener.join()
        if self._error is not None:
            raise self._error

    def _listen(self) -> None:
        try:
            for done, total in self._pool.messages(DONE):
                if self._progress is not None:
                    self._progress(done, total)
        except Exception as error:  # noqa: BLE001 - it is raised where somebody waits
            self._error = error


def _refresh(workspace: Workspace, bounds: Bounds, channel: Channel) -> None:
    index_recorded(
        workspace.repo,
        partial(
            index_repository,
            workspace.repo,
            config=bounds,
            jobs=processors(),
            progress=lambda done, total: channel.send((done, total)),
        ),
        note=lambda row, generated: write_event(workspace.repo, append_index_run, row, generated),
        now=utc_now,
    )
    channel.send(DONE)
