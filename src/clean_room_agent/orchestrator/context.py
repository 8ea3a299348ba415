"""Gives each pass of a run its context, once: from the run's copy of the index, which the run itself must not know."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from clean_room_agent.artifacts.context import ContextPackage, ContextRequest, RefinementRequest
from clean_room_agent.artifacts.names import relative_pass
from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.llm.router import Window
from clean_room_agent.orchestrator.commits import RunCommits
from clean_room_agent.orchestrator.journal import Journal, as_text
from clean_room_agent.orchestrator.testing.test_runner import TestRunner

CONTEXT = "room"
"""Its name in the session, which runs of earlier builds have there too."""


class Retrieved(Protocol):
    """What a retrieval found."""

    @property
    def package(self) -> ContextPackage:
        """The context."""


class ContextSource(Protocol):
    """Makes contexts from one state of the index."""

    def retrieve(self, request: ContextRequest) -> Retrieved:
        """The package for one pass; its decisions are in the record when this returns."""

    def refine(self, refinement: RefinementRequest, request: ContextRequest) -> ContextPackage:
        """The package of `request` with what `refinement` names added, judged and assembled again."""


class RunIndex(Protocol):
    """The run's own copy of the index."""

    @property
    def source(self) -> ContextSource:
        """Makes contexts from the index as it is now."""

    def refresh(self, root: Path, paths: Sequence[str], commit: str) -> None:
        """Make the index say what `paths` (relative to the worktree `root`) hold now; it then describes `commit`."""

    def described(self) -> str:
        """The commit of the run that the index describes; "" before the first refresh."""


class RunContext:
    """Contexts of a run's newest commit. What was made stays made: a resumed pass is shown the context that it had."""

    def __init__(
        self,
        index: RunIndex,
        journal: Journal,
        commits: RunCommits,
        runner: TestRunner,
        *,
        unlike: Sequence[str] = (),
    ) -> None:
        """`runner` has the worktree that contexts are read from; `unlike` are its paths that the index does not describe as
        they are there.
        """
        self._index = index
        self._journal = journal
        self._commits = commits
        self._runner = runner
        self._unlike = unlike
        self._timed = journal.recorder.timed

    def retrieve(self, request: ContextRequest) -> ContextPackage:
        """The package for one pass."""
        entry = self._journal.entry(request.pass_id, CONTEXT, ContextPackage, (as_text(request),))
        if entry.value is not None:
            return entry.value
        self.follow_head()
        with self._timed(TimeKind.RETRIEVAL, relative_pass(request.pass_id)):
            package = self._index.source.retrieve(request).package
        return entry.keep(package)

    def refine(self, refinement: RefinementRequest, request: ContextRequest) -> ContextPackage:
        """The package of `request` with what `refinement` names added, judged and assembled again."""
        inputs = (as_text(request), as_text(refinement))
        entry = self._journal.entry(request.pass_id, CONTEXT, ContextPackage, inputs)
        if entry.value is not None:
            return entry.value
        self.follow_head()
        with self._timed(TimeKind.RETRIEVAL, relative_pass(request.pass_id)):
            package = self._index.source.refine(refinement, request)
        return entry.keep(package)

    def follow_head(self) -> None:
        """Worktree and index show the run's newest accepted commit."""
        commits = self._commits
        # The first time, this waits for the index: Ctrl-C is heard meanwhile.
        with self._timed(TimeKind.INDEX_COPY, "wait for the index"):
            described = self._index.described()
        with self._journal.interrupts.shield():
            self._runner.checkout(commits.head)
            if not described:
                described = commits.base
                self._refresh(self._unlike, described)
            if described != commits.head:
                changed = tuple(each.path for each in commits.changed(described, commits.head))
                self._refresh(changed, commits.head)

    def _refresh(self, paths: Sequence[str], commit: str) -> None:
        with self._timed(TimeKind.INDEX_COPY, "follow the commit"):
            self._index.refresh(self._runner.root, paths, commit)


def fits(package: ContextPackage, window: Window, extra_reserved: int) -> bool:
    """Whether the package holds no more than a window leaves for content."""
    return package.budget.used_tokens <= window.context - window.reserved - extra_reserved
