"""One run: its parts, the contexts of its passes, and how far it has come."""

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from clean_room_agent.artifacts.context import ContextPackage, ContextRequest, RefinementRequest
from clean_room_agent.artifacts.goals import Goals, NamedDefinition
from clean_room_agent.artifacts.names import part_plan_pass, relative_pass
from clean_room_agent.artifacts.outcomes import Action, TimeKind
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.router import Window
from clean_room_agent.orchestrator.commits import RunCommits
from clean_room_agent.orchestrator.journal import Journal, as_text
from clean_room_agent.orchestrator.run_recorder import RunRecorder
from clean_room_agent.orchestrator.task import RunLimits, Task
from clean_room_agent.orchestrator.test_runs.command_runner import CommandRunner
from clean_room_agent.orchestrator.test_runs.deciding import NO_TRACE, Deciding, Trace, deciding_files
from clean_room_agent.orchestrator.test_runs.results import TestRun
from clean_room_agent.orchestrator.test_runs.worktrees import WorktreePool

if TYPE_CHECKING:
    from clean_room_agent.artifacts.plans import FailureSignal, PlanStep
    from clean_room_agent.orchestrator.recovery import Advice

CONTEXT = "room"
"""The key in the session, unchanged so that earlier runs can be resumed."""
NEVER_TRIED = Action(kind="skip", rule="it was not tried")


class RetrievalResult(Protocol):
    """The result of a retrieval."""

    @property
    def package(self) -> ContextPackage:
        """The context."""


class ContextSource(Protocol):
    """Makes contexts from one state of the index."""

    def retrieve(self, request: ContextRequest) -> RetrievalResult:
        """The package for one pass; its decisions are recorded when this returns."""

    def refine(self, refinement: RefinementRequest, request: ContextRequest) -> ContextPackage:
        """The package of `request` with what `refinement` names added, judged and assembled again."""

    def definitions(self, names: Sequence[str]) -> "tuple[NamedDefinition, ...]":
        """The definitions outside of tests with one of these plain or dotted names, with the tests that use them."""

    def mentioned(self, words: str) -> "tuple[NamedDefinition, ...]":
        """The definitions outside of tests that the words name, as far as it is clear which are meant."""


class RunIndex(Protocol):
    """The run's own copy of the index."""

    @property
    def source(self) -> ContextSource:
        """The source of contexts from the index as it is now."""

    def refresh(self, root: Path, paths: Sequence[str], commit: str) -> None:
        """Index the present contents of `paths` (relative to the worktree `root`) again; the index then describes
        `commit`.
        """

    def described(self) -> str:
        """The commit of the run that the index describes; "" before the first refresh."""


class RunContext(Struct, frozen=True, kw_only=True):
    """Makes contexts of a run's newest commit. A resumed pass is shown the context that it had."""

    index: RunIndex
    journal: Journal
    commits: RunCommits
    runner: CommandRunner
    """It has the worktree that contexts are read from."""
    unlike: Sequence[str] = ()
    """The worktree's paths that differ from what the index describes."""

    def retrieve(self, request: ContextRequest) -> ContextPackage:
        """The package for one pass."""
        return self._package_of(request, lambda source: source.retrieve(request).package)

    def refine(self, refinement: RefinementRequest, request: ContextRequest) -> ContextPackage:
        """The package of `request` with what `refinement` names added, judged and assembled again."""
        return self._package_of(
            request, lambda source: source.refine(refinement, request), as_text(refinement)
        )

    def _package_of(
        self, request: ContextRequest, make: Callable[[ContextSource], ContextPackage], *further: str
    ) -> ContextPackage:
        """The package that the pass had from the same request and `further` inputs, or that `make` gives now."""
        inputs = (as_text(request), *further)
        entry = self.journal.entry(request.pass_id, CONTEXT, ContextPackage, inputs)
        if entry.value is not None:
            return entry.value
        self.follow_head()
        with self.journal.recorder.timed(TimeKind.RETRIEVAL, relative_pass(request.pass_id)):
            package = make(self.index.source)
        return entry.keep(package)

    def definitions(self, names: Sequence[str]) -> "tuple[NamedDefinition, ...]":
        """The definitions outside of tests with one of these plain or dotted names, as the run's newest commit has them."""
        self.follow_head()
        return self.index.source.definitions(names)

    def mentioned(self, words: str) -> "tuple[NamedDefinition, ...]":
        """The definitions outside of tests that the words name, as the run's newest commit has them."""
        self.follow_head()
        return self.index.source.mentioned(words)

    def named_plainly(self, words: str) -> "tuple[NamedDefinition, ...]":
        """The functions and classes whose names stand in `words` as any other word does."""
        found = self.definitions(tuple(dict.fromkeys(re.findall(r"[A-Za-z_]\w{3,}", words))))
        count = Counter(one.name for one in found)
        return tuple(one for one in found if one.kind in {"function", "class"} and count[one.name] == 1)

    def follow_head(self) -> None:
        """Bring worktree and index to the run's newest accepted commit."""
        commits = self.commits
        # The first time, this waits for the index: Ctrl-C is heard meanwhile.
        with self.journal.recorder.timed(TimeKind.INDEX_COPY, "wait for the index"):
            described = self.index.described()
        with self.journal.interrupts.shield():
            self.runner.checkout(commits.head)
            if not described:
                described = commits.base
                self._refresh_index(self.unlike, described)
            if described != commits.head:
                changed = tuple(each.path for each in commits.changed(described, commits.head))
                self._refresh_index(changed, commits.head)

    def _refresh_index(self, paths: Sequence[str], commit: str) -> None:
        with self.journal.recorder.timed(TimeKind.INDEX_COPY, "follow the commit"):
            self.index.refresh(self.runner.root, paths, commit)


def names_file(words: str, path: str) -> bool:
    """Whether `words` name the file, by its path or by its name."""
    name = re.escape(posixpath.basename(path))
    return path in words or re.search(rf"(?<![\w/.-]){name}(?![\w/-])", words) is not None


def fits(package: ContextPackage, window: Window, extra_reserved: int) -> bool:
    """Whether the package fits into what a window leaves for content."""
    return package.budget.used_tokens <= window.context - window.reserved - extra_reserved


class StepDone(Struct, frozen=True, kw_only=True):
    """An accepted step."""

    part_id: str
    step: "PlanStep"
    commit: str


class StepFailed(Struct, frozen=True, kw_only=True):
    """A step that was given up, or never begun because one that it needs was given up."""

    part_id: str
    step: "PlanStep"
    why: str
    cut_off: bool = False
    """Whether an answer for it was cut off."""
    failures: "tuple[FailureSignal, ...]" = ()
    """What went wrong in the last attempt; empty if there was none."""
    action: Action = NEVER_TRIED
    """The last decision about it."""

    @property
    def replan(self) -> bool:
        """Whether its part should be replanned."""
        return self.action.kind in {"replan", "reduce_scope"}

    @property
    def fault(self) -> str:
        """What is wrong with the step, for a planner."""
        remark = " (an answer was cut off: its edits are too long for one step)" if self.cut_off else ""
        return f"step {self.step.id} failed: {self.why}{remark}"


class PlanProgress(Struct, kw_only=True):
    """How far the plan has been carried out."""

    done: list[StepDone] = field(default_factory=list)
    failed: list[StepFailed] = field(default_factory=list)
    parts_done: int = 0
    total_parts: int = 0
    total_steps: int = 0
    replans: int = 0
    """Parts that were planned again."""
    files: set[str] = field(default_factory=set)
    """Every path that a plan of this run names; tests among them may be edited."""


class Stop(Struct, kw_only=True):
    """Why the run stops; all "" while it continues."""

    reason: str = ""
    """Why no further pass may begin."""
    question: str = ""
    """The question to a person before the run can continue."""
    no_plan: str = ""
    """Why a plan could not be made."""


class Tried(Struct, frozen=True, kw_only=True):
    """A change that the direct route tried in vain."""

    path: str
    words: str
    """The change, and what the tests gave with it, in a line."""


class Progress(Struct, kw_only=True):
    """The state of the run; besides the head of its commits, the only thing here that changes."""

    plan: PlanProgress = field(default_factory=PlanProgress)
    at_base: TestRun | None = None
    """The test run of the snapshot, by the command that judges steps: None until the baseline ran."""
    accepted: TestRun | None = None
    """The test run of the head, by the same command."""
    advice: "list[Advice]" = field(default_factory=list)
    """The doctor's advice about all steps."""
    stop: Stop = field(default_factory=Stop)
    goals: Goals = field(default_factory=Goals)
    """The tests that were red at the base and show that the task is done once they are green."""
    tried: tuple[Tried, ...] = ()
    """What the direct route tried in vain, best first."""
    doubt: str = ""
    """Why the goal tests that the task's words gave do not decide: another change does as well, and differs elsewhere."""
    trace: Trace = NO_TRACE
    """What the tests of the snapshot depended on."""
    asked: frozenset[str] = frozenset()
    """The files that a plan of the user's names."""
    deciding: Deciding | None = None
    """The snapshot's, once they were asked for."""
    runs_for_names: int = 0
    """How often an unchanged tree was tested again to find out which names of tests change."""

    def stopped(self) -> bool:
        """Whether no further pass may begin."""
        return bool(self.stop.reason)


class Run(Struct, frozen=True, kw_only=True):
    """Everything that the passes of one run share."""

    task: Task
    commits: RunCommits
    worktrees: WorktreePool
    context: RunContext
    models: ModelClient
    journal: Journal
    progress: Progress

    @property
    def limits(self) -> RunLimits:
        """What the configuration allows."""
        return self.task.limits

    @property
    def tests(self) -> CommandRunner:
        """Runs commands in the run's own worktree."""
        return self.worktrees.first

    @property
    def recorder(self) -> RunRecorder:
        """Writes to the record, and notifies the observer."""
        return self.journal.recorder

    @property
    def deciding(self) -> Deciding:
        """The files of the snapshot that decide whether its tests pass; known best once the baseline ran."""
        known = self.progress.deciding
        if known is None or known.trace is not self.progress.trace:
            base = self.commits.tree(self.commits.base)
            known = deciding_files(self.tests.commands, base.paths, base.data, self.progress.trace)
            self.progress.deciding = known
        return known

    def replans_left(self, part_id: str, number: int) -> int:
        """How often a part may still be replanned while its plan with this number (from 1) is followed; each hint of
        the user adds one.
        """
        limits = self.limits.recovery
        hinted = self.task.hints.by(part_plan_pass(self.task.task_id, part_id, number))
        left = limits.replans_per_part + hinted - number + 1
        return max(0, min(left, limits.replans_per_run - self.progress.plan.replans))

    def report_progress(self) -> None:
        """Record the current counts, unless a resumed run is still reading what was done before."""
        if self.journal.behind:
            return
        plan = self.progress.plan
        self.recorder.progress(
            total_parts=plan.total_parts,
            total_steps=plan.total_steps,
            parts_done=plan.parts_done,
            steps_done=len(plan.done),
        )


def is_asked(run: Run, path: str) -> bool:
    """Whether the user named the file: in the task, or in a plan that was given."""
    return (
        path in run.progress.asked or path in run.task.given.files or names_file(run.task.description, path)
    )
