"""Rooms that were made stay made: a resumed pass is shown the room that it had, and nothing is asked for it again."""

from collections.abc import Callable, Sequence
from pathlib import Path

from clean_room_agent.artifacts.package import ContextPackage
from clean_room_agent.artifacts.tasks import RefinementRequest, RoomRequest
from clean_room_agent.llm.router import Window
from clean_room_agent.orchestrator.ports import ContextPort
from clean_room_agent.orchestrator.resume.journal import Journal, as_text

ROOM = "room"


def fits(package: ContextPackage, window: Window, extra_reserved: int) -> bool:
    """Whether the package holds no more than a window leaves for content."""
    return package.budget.used_tokens <= window.context - window.reserved - extra_reserved


class KeptContext:
    """The `ContextPort` of a run, with a memory: a pass has one room."""

    def __init__(self, port: ContextPort, journal: Journal, get_ready: Callable[[], None]) -> None:
        """`get_ready` is called before a room is made: work tree and index then show the run's newest commit."""
        self._port = port
        self._journal = journal
        self._get_ready = get_ready

    def retrieve(self, request: RoomRequest) -> ContextPackage:
        """As the port says."""
        return self._once(request, lambda: self._port.retrieve(request), ())

    def refine(self, request: RefinementRequest, room: RoomRequest) -> ContextPackage:
        """As the port says."""
        return self._once(room, lambda: self._port.refine(request, room), (as_text(request),))

    def refresh(self, root: Path, paths: Sequence[str], commit: str) -> None:
        """As the port says."""
        self._port.refresh(root, paths, commit)

    def described(self) -> str:
        """As the port says."""
        return self._port.described()

    def _once(
        self, room: RoomRequest, make: Callable[[], ContextPackage], more: tuple[str, ...]
    ) -> ContextPackage:
        def made() -> ContextPackage:
            self._get_ready()
            return make()

        return self._journal.once(room.pass_id, ROOM, ContextPackage, made, (as_text(room), *more))
