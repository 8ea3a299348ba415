"""A run's way to curated context: retrieval over its own copy of the index."""

from collections.abc import Callable, Sequence
from pathlib import Path

from clean_room_agent.artifacts.package import ContextPackage
from clean_room_agent.artifacts.tasks import ContextRequest, RefinementRequest
from clean_room_agent.db.curated import index_state
from clean_room_agent.db.rows import Connection
from clean_room_agent.indexer.update import update_paths
from clean_room_agent.retrieval.retriever import Retriever

RUN_COMMIT_KEY = "run_commit"
"""In the copy: which commit of the run it describes."""


class LocalContext:
    """The `ContextPort` of a run: retrieval over the run's own copy of the index."""

    def __init__(self, make_retriever: Callable[[], Retriever], index: Connection) -> None:
        self._make_retriever = make_retriever
        self._retriever = make_retriever()
        self._index = index

    def retrieve(self, request: ContextRequest) -> ContextPackage:
        """As the port says."""
        return self._retriever.retrieve(request).package

    def refine(self, refinement: RefinementRequest, request: ContextRequest) -> ContextPackage:
        """As the port says."""
        return self._retriever.refine(refinement, request)

    def refresh(self, root: Path, paths: Sequence[str], commit: str) -> None:
        """As the port says; a retriever knows one state of the index, so there is a new one afterwards."""
        if paths:
            update_paths(self._index, root, paths)
        # Later than the change: a copy that names the commit holds it, whatever a power cut took.
        index_state.put_state(self._index, RUN_COMMIT_KEY, commit)
        self._retriever = self._make_retriever()

    def described(self) -> str:
        """As the port says."""
        return index_state.get_state(self._index, RUN_COMMIT_KEY) or ""
