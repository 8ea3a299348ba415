"""Contexts that were made stay made: a resumed pass is shown the context that it had, and nothing is asked for it again."""

from collections.abc import Callable, Sequence
from pathlib import Path

from clean_room_agent.artifacts.package import ContextPackage
from clean_room_agent.artifacts.tasks import ContextRequest, RefinementRequest
from clean_room_agent.llm.router import Window
from clean_room_agent.orchestrator.ports import ContextPort
from clean_room_agent.orchestrator.resume.journal import Journal, as_text

CONTEXT = "room"
"""Its name in the session, which runs of earlier builds have there too."""


def fits(package: ContextPackage, window: Window, extra_reserved: int) -> bool:
    """Whether the package holds no more than a window leaves for content."""
    return package.budget.used_tokens <= window.context - window.reserved - extra_reserved


class KeptContext:
    """The `ContextPort` of a run, with a memory: a pass has one context."""

    def __init__(self, port: ContextPort, journal: Journal, get_ready: Callable[[], None]) -> None:
        """`get_ready` is called before a context is made: work tree and index then show the run's newest commit."""
        self._port = port
        self._journal = journal
        self._get_ready = get_ready

    def retrieve(self, request: ContextRequest) -> ContextPackage:
        """As the port says."""
        return self._once(request, lambda: self._port.retrieve(request), ())

    def refine(self, refinement: RefinementRequest, request: ContextRequest) -> ContextPackage:
        """As the port says."""
        return self._once(request, lambda: self._port.refine(refinement, request), (as_text(refinement),))

    def refresh(self, root: Path, paths: Sequence[str], commit: str) -> None:
        """As the port says."""
        self._port.refresh(root, paths, commit)

    def described(self) -> str:
        """As the port says."""
        return self._port.described()

    def _once(
        self, request: ContextRequest, make: Callable[[], ContextPackage], more: tuple[str, ...]
    ) -> ContextPackage:
        def made() -> ContextPackage:
            self._get_ready()
            return make()

        return self._journal.once(request.pass_id, CONTEXT, ContextPackage, made, (as_text(request), *more))
