"""One run: what it works with, and where it stands."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from clean_room_agent.artifacts.event_kinds import EventKind
from clean_room_agent.artifacts.ids import part_plan_pass
from clean_room_agent.artifacts.plans import MetaPlan, PartPlan, PlanStep
from clean_room_agent.artifacts.verdicts import FailureSignal
from clean_room_agent.db.session import Session
from clean_room_agent.execute.config import EditConfig
from clean_room_agent.git.repository import Repository
from clean_room_agent.git.worktree import Worktree
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.orchestrator.commit_tree import Tree
from clean_room_agent.orchestrator.config import OrchestratorConfig, RecoveryConfig, SolveConfig
from clean_room_agent.orchestrator.events import Observer
from clean_room_agent.orchestrator.ports import ContextPort
from clean_room_agent.orchestrator.recovery.doctor import Advice
from clean_room_agent.orchestrator.resume.hints import Hint, Hints
from clean_room_agent.orchestrator.resume.interrupts import Interrupts
from clean_room_agent.orchestrator.resume.journal import Journal
from clean_room_agent.orchestrator.run_recorder import RunRecorder
from clean_room_agent.orchestrator.testing.results import TestRun
from clean_room_agent.orchestrator.testing.test_bench import TestBench
from clean_room_agent.orchestrator.testing.worktree_pool import Benches
from clean_room_agent.orchestrator.usage_meter import Meter


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """The slices of the configuration that bound a run."""

    solve: SolveConfig
    orchestrator: OrchestratorConfig
    edit: EditConfig
    recovery: RecoveryConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDone:
    """An accepted step."""

    part_id: str
    step: PlanStep
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFailed:
    """A step that was given up, or never begun because what it needs was."""

    part_id: str
    step: PlanStep
    why: str
    cut_off: bool = False
    """Whether an answer for it was."""
    failures: tuple[FailureSignal, ...] = ()
    """What went wrong in the last attempt; none where there was no attempt."""
    replan: bool = False
    """Whether its part is to be planned again."""

    @property
    def fault(self) -> str:
        """What is wrong with the step, for a planner."""
        remark = " (an answer was cut off: its edits are too long for one step)" if self.cut_off else ""
        return f"step {self.step.id} failed: {self.why}{remark}"


@dataclass(kw_only=True)
class Progress:
    """Where the run stands; the only thing here that changes."""

    head: str
    """The newest accepted commit; the snapshot at first."""
    kept_head: str = ""
    """What `refs/cra/<task>/head` names; "" while it does not exist. A resumed run is behind it until it goes on."""
    at_base: TestRun | None = None
    """The test run of the snapshot, by the command that judges steps: None until the baseline ran."""
    accepted: TestRun | None = None
    """The test run of `head`, by the same command."""
    done: list[StepDone] = field(default_factory=list)
    failed: list[StepFailed] = field(default_factory=list)
    parts_done: int = 0
    total_parts: int = 0
    total_steps: int = 0
    replans: int = 0
    """Parts that were planned again."""
    advice: list[Advice] = field(default_factory=list)
    """What the doctor said, about whichever step."""
    planned_files: set[str] = field(default_factory=set)
    """Every path that a plan of this run names: tests among them may be edited."""
    stop_reason: str = ""
    """Why no further pass may begin; "" while one may."""
    question: str = ""
    """What a person is asked before the run can go on; "" for nothing."""
    no_plan_reason: str = ""
    """Why a plan could not be made; "" while none failed."""

    def stopped(self) -> bool:
        """Whether no further pass may begin."""
        return bool(self.stop_reason)


@dataclass(frozen=True, kw_only=True)
class Run:
    """Everything that the passes of one run share."""

    task_id: str
    task: str
    repo: Repository
    base: str
    """The snapshot's commit."""
    worktree: Worktree
    context: ContextPort
    bench: TestBench
    benches: Benches
    """It, and others where candidates are tested at a time."""
    models: ModelClient
    session: Session
    recorder: RunRecorder
    observer: Observer
    meter: Meter
    limits: RunLimits
    monotonic: Callable[[], float]
    """Seconds."""
    started_at: float
    """So many seconds ago, by `monotonic`, as the run has taken: a resumed one began earlier than its process."""
    progress: Progress
    journal: Journal
    hints: Hints
    interrupts: Interrupts

    @property
    def root(self) -> Path:
        """The worktree's folder."""
        return self.worktree.path

    @property
    def words(self) -> str:
        """The task as a pass is told it: the user's words, and the hints given since."""
        return self.hints.with_task(self.task)

    def hear_hints(self, pass_id: str, *, known: bool) -> None:
        """The pass that begins is shown the hints that are due; the record says from which pass on each is."""
        for text in self.hints.begin(pass_id, known=known):
            self.recorder.event(pass_id, EventKind.HINT_SHOWN, text)

    def tree(self) -> Tree:
        """The files as the newest accepted commit has them."""
        return Tree(repo=self.repo, commit=self.progress.head)

    def budget_spent(self) -> str:
        """Which budget of the run is used up; "" while none is."""
        limits, spent = self.limits.orchestrator, self.meter.read()
        minutes = (self.monotonic() - self.started_at) / 60
        if spent.calls >= limits.max_calls:
            return f"{spent.calls} model calls (max_calls = {limits.max_calls})"
        if spent.tokens >= limits.max_tokens:
            return f"{spent.tokens} tokens (max_tokens = {limits.max_tokens})"
        if minutes >= limits.max_minutes:
            return f"{minutes:.0f} minutes (max_minutes = {limits.max_minutes:g})"
        return ""

    def budget_share(self) -> float:
        """How much of the budget that is nearest to its end is used up."""
        limits, spent = self.limits.orchestrator, self.meter.read()
        minutes = (self.monotonic() - self.started_at) / 60
        return max(
            spent.calls / limits.max_calls, spent.tokens / limits.max_tokens, minutes / limits.max_minutes
        )

    def replans_left(self, part_id: str, number: int) -> int:
        """How often a part may still be planned again, while its plan with this number (from 1) is followed: once more
        for each hint of the user.
        """
        limits = self.limits.recovery
        hinted = self.hints.by(part_plan_pass(self.task_id, part_id, number))
        left = limits.replans_per_part + hinted - number + 1
        return max(0, min(left, limits.replans_per_run - self.progress.replans))

    def report_progress(self) -> None:
        """The record has the counts of now; while a resumed run is behind, those of before stand."""
        if self.journal.behind:
            return
        at = self.progress
        self.recorder.progress(
            total_parts=at.total_parts,
            total_steps=at.total_steps,
            parts_done=at.parts_done,
            steps_done=len(at.done),
        )
        self.session.set_state("orchestrator_progress", {"head": at.head, "steps": len(at.done)})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGiven:
    """What the user decides beside the task: by a reviewed file (both None: the run plans by itself), or by hints."""

    meta_plan: MetaPlan | None = None
    single: PartPlan | None = None
    """A plan followed as one atomic step."""
    hints: tuple[Hint, ...] = ()
