"""What the run needs from parts that it must not know: context, and nothing else of the index."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from clean_room_agent.artifacts.package import ContextPackage
from clean_room_agent.artifacts.tasks import RefinementRequest, RoomRequest


class ContextPort(Protocol):
    """The way to curated context; behind it stands the run's own copy of the index."""

    def retrieve(self, request: RoomRequest) -> ContextPackage:
        """The package for one pass; its decisions are in the record when this returns."""

    def refine(self, request: RefinementRequest, room: RoomRequest) -> ContextPackage:
        """The package of `room` with what `request` names added, judged and assembled again."""

    def refresh(self, root: Path, paths: Sequence[str], commit: str) -> None:
        """Make the index say what `paths` (relative to the worktree `root`) hold now; it then describes `commit`."""

    def described(self) -> str:
        """The commit of the run that the index describes; "" before the first refresh."""
