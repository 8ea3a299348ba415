"""What the run needs from parts that it must not know: context, and nothing else of the index."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from clean_room_agent.artifacts.package import ContextPackage
from clean_room_agent.artifacts.tasks import ContextRequest, RefinementRequest


class ContextPort(Protocol):
    """The way to curated context; behind it stands the run's own copy of the index."""

    def retrieve(self, request: ContextRequest) -> ContextPackage:
        """The package for one pass; its decisions are in the record when this returns."""

    def refine(self, refinement: RefinementRequest, request: ContextRequest) -> ContextPackage:
        """The package of `request` with what `refinement` names added, judged and assembled again."""

    def refresh(self, root: Path, paths: Sequence[str], commit: str) -> None:
        """Make the index say what `paths` (relative to the worktree `root`) hold now; it then describes `commit`."""

    def described(self) -> str:
        """The commit of the run that the index describes; "" before the first refresh."""
