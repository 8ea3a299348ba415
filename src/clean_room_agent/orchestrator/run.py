"""One run: the parts it works with, and how far it has come."""

from msgspec import Struct, field

from clean_room_agent.artifacts.names import part_plan_pass
from clean_room_agent.artifacts.plans import FailureSignal, PlanStep
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.orchestrator.commits import RunCommits
from clean_room_agent.orchestrator.context import RunContext
from clean_room_agent.orchestrator.journal import Journal
from clean_room_agent.orchestrator.recovery_facts import Advice
from clean_room_agent.orchestrator.run_recorder import RunRecorder
from clean_room_agent.orchestrator.task import RunLimits, Task
from clean_room_agent.orchestrator.testing.results import TestRun
from clean_room_agent.orchestrator.testing.test_runner import TestRunner
from clean_room_agent.orchestrator.testing.worktrees import WorktreePool


class StepDone(Struct, frozen=True, kw_only=True):
    """An accepted step."""

    part_id: str
    step: PlanStep
    commit: str


class StepFailed(Struct, frozen=True, kw_only=True):
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
    """Every path that a plan of this run names: tests among them may be edited."""


class Stop(Struct, kw_only=True):
    """Why the run goes no further; all "" while it may."""

    reason: str = ""
    """Why no further pass may begin."""
    question: str = ""
    """What a person is asked before the run can go on."""
    no_plan: str = ""
    """Why a plan could not be made."""


class Progress(Struct, kw_only=True):
    """Where the run stands; with the head of its commits, the only thing here that changes."""

    plan: PlanProgress = field(default_factory=PlanProgress)
    at_base: TestRun | None = None
    """The test run of the snapshot, by the command that judges steps: None until the baseline ran."""
    accepted: TestRun | None = None
    """The test run of the head, by the same command."""
    advice: list[Advice] = field(default_factory=list)
    """What the doctor said, about whichever step."""
    stop: Stop = field(default_factory=Stop)

    def stopped(self) -> bool:
        """Whether no further pass may begin."""
        return bool(self.stop.reason)


class Run(Struct, frozen=True, kw_only=True):
    """What the passes of one run share."""

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
    def tests(self) -> TestRunner:
        """Runs commands in the run's own worktree."""
        return self.worktrees.first

    @property
    def recorder(self) -> RunRecorder:
        """Writes to the record, and notifies the observer."""
        return self.journal.recorder

    def replans_left(self, part_id: str, number: int) -> int:
        """How often a part may still be planned again, while its plan with this number (from 1) is followed: once more
        for each hint of the user.
        """
        limits = self.limits.recovery
        hinted = self.task.hints.by(part_plan_pass(self.task.task_id, part_id, number))
        left = limits.replans_per_part + hinted - number + 1
        return max(0, min(left, limits.replans_per_run - self.progress.plan.replans))

    def report_progress(self) -> None:
        """Record the current counts, unless a resumed run still reads what was done before."""
        if self.journal.behind:
            return
        plan = self.progress.plan
        self.recorder.progress(
            total_parts=plan.total_parts,
            total_steps=plan.total_steps,
            parts_done=plan.parts_done,
            steps_done=len(plan.done),
        )
