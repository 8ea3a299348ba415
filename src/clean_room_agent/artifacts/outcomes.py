"""Closed vocabularies for how attempts, passes and runs end, what follows a failed attempt, what may happen during a run,
and how its time is spent; and the results that use them.
"""

from enum import StrEnum
from typing import Literal

from msgspec import Struct

from clean_room_agent.artifacts.context import RefinementRequest, Role
from clean_room_agent.artifacts.goals import GoalOutcome
from clean_room_agent.errors import BudgetSpent, CraError, Interrupted

DoctorDecision = Literal["retry_with_fix", "replan", "skip_step", "fatal_error", "rollback_provider"]
"""The doctor's decisions about a failing step."""
Form = Literal["", "whole_symbol"]
"""How edits have to be written: as the coder likes, or each changed symbol as a whole."""
ActionKind = Literal[
    "stop",
    "refine",
    "reduce_scope",
    "replan",
    "diagnose",
    "change_strategy",
    "retry",
    "escalate",
    "skip",
    "needs_human",
]
ENDS_RUN: frozenset[ActionKind] = frozenset({"stop", "skip", "needs_human"})
"""Actions that are decided again when a run is resumed: a limit may have been raised, or the user have given a hint."""


class AttemptOutcome(StrEnum):
    """How one attempt at a step ended."""

    APPLIED_AND_PASSED = "applied_and_passed"
    NO_EDITS = "no_edits"
    UNREADABLE = "unreadable"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    IMPORT_BROKEN = "import_broken"
    """Applied, and then tests could not be loaded, because of the edits."""
    TESTS_FAILED = "tests_failed"
    TIMED_OUT = "timed_out"
    INSUFFICIENT_CONTEXT = "insufficient_context"
    INFRASTRUCTURE = "infrastructure"


class Drawn(Struct, frozen=True, kw_only=True):
    """How an answer was asked for."""

    varied: bool = False
    """With a temperature, and a separate seed."""
    more_room: bool = False
    form: Form = ""
    model: str = ""
    """A stronger model's tag; "" for the coder."""
    unchanged: bool = False
    """From the prompt of the first attempt, which shows nothing that failed."""


class Action(Struct, frozen=True, kw_only=True):
    """What happens next, and the rule that said so."""

    kind: ActionKind
    rule: str
    vary: bool = False
    """Whether the next answer must be sampled differently, because the last one was a repetition or unreadable."""
    more_room: bool = False
    """Whether the next answer gets more of the window, because an answer of this step was cut off."""
    form: Form = ""
    model: str = ""
    """The stronger model that is asked next; "" for the coder."""
    unchanged: bool = False
    """Whether the next answer is sampled from the unchanged prompt."""
    missing: RefinementRequest | None = None
    """What is added to the next context."""
    hint: str = ""
    """What the doctor tells the coder."""
    question: str = ""
    """The question to a person; "" unless the run needs one."""

    def drawn(self) -> Drawn:
        """How the next answer is asked for."""
        return Drawn(
            varied=self.vary,
            more_room=self.more_room,
            form=self.form,
            model=self.model,
            unchanged=self.unchanged,
        )


class RunStatus(StrEnum):
    """The status of a run."""

    RUNNING = "running"
    INTERRUPTED = "interrupted"
    NEEDS_HUMAN = "needs_human"
    COMPLETE = "complete"
    """A goal test shows that the task is done, and nothing that passed fails."""
    UNPROVEN = "unproven"
    """Something was changed and nothing fails, but no goal test shows that the task is done."""
    PARTIAL = "partial"
    FAILED = "failed"


WHOLE = frozenset({RunStatus.COMPLETE, RunStatus.UNPROVEN})
"""The statuses of runs in whose results nothing fails."""
ENDED = frozenset({*WHOLE, RunStatus.FAILED})
"""The statuses of runs that have ended by themselves, so that their sessions belong in the record."""


class PassType(StrEnum):
    """What a pass of a run does."""

    META_PLAN = "meta_plan"
    """Divides the task into parts; once in a run."""
    PART_PLAN = "part_plan"
    """Divides a part into steps; again after a plan that did not work out."""
    IMPLEMENT = "implement"
    """One attempt at a step, or the whole of the direct route."""
    ADJUST = "adjust"
    """Revises what remains of a part, after each of its steps."""

    @property
    def role(self) -> Role:
        """Of the model that answers the main question of such a pass."""
        match self:  # mypy reports a missing return for a value that is not named here
            case PassType.IMPLEMENT:
                return "coding"
            case PassType.META_PLAN | PassType.PART_PLAN | PassType.ADJUST:
                return "reasoning"


class PassResult(Struct, frozen=True, kw_only=True):
    """One pass of a run."""

    pass_type: PassType
    pass_id: str
    part_id: str = ""
    step_id: str = ""
    success: bool
    detail: str = ""
    fallback: bool = False
    """Whether the pass had to plan, and its plan is the program's own because there was no valid one."""


class OrchestratorResult(Struct, frozen=True, kw_only=True):
    """A whole run."""

    task_id: str
    status: RunStatus
    reason: str = ""
    """Why the status is not complete, in one line; "" if it is."""
    total_parts: int = 0
    total_steps: int = 0
    parts_completed: int = 0
    steps_completed: int = 0
    cumulative_diff: str = ""
    branch: str = ""
    passes: tuple[PassResult, ...] = ()
    evidence: tuple[GoalOutcome, ...] = ()
    """What became of each goal test, in the order of the run's goals."""


def status_of(error: BaseException) -> RunStatus:
    """The status of a run that ended with this error."""
    if isinstance(error, KeyboardInterrupt | Interrupted):
        return RunStatus.INTERRUPTED
    return RunStatus.PARTIAL if isinstance(error, BudgetSpent) else RunStatus.FAILED


def reason_of(error: BaseException) -> str:
    """Why the run ended with this error, in words."""
    if isinstance(error, CraError):
        return error.message
    return "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"


class EventKind(StrEnum):
    """What happened to a run, or within one of its passes. Values are stored in records, so they must not change."""

    # The run, under the task's id
    FLAGS = "flags"
    """Flags that override the configuration, as JSON."""
    PLAN_GIVEN = "plan_given"
    """A plan that the user gave, as JSON."""
    META_PLAN_GIVEN = "meta_plan_given"
    """The same for a plan of parts."""
    RESUMED = "resumed"
    """The run was resumed; what had changed in the configuration, in words."""
    RESUMED_WITH = "resumed_with"
    """The whole configuration of a resumed run, as JSON."""
    EVIDENCE_GIVEN = "evidence_given"
    """How the user says that the task is judged, and where it is, as JSON."""
    EVIDENCE = "evidence"
    """What became of each goal test, as JSON."""
    HINT = "hint"
    """What the user told a resumed run."""
    NOTE = "note"
    """Something that the user was told, which changed nothing."""
    DESCRIBED_BY = "described_by"
    """The descriptions (ids, as JSON) that the files in the run's index have."""
    PART_BLOCKED = "part_blocked"
    """A part was not started, because one that it needs is not done."""
    REPLAN = "replan"
    """A part is replanned; what failed in its last plan."""
    SCOPE_REDUCED = "scope_reduced"
    """A step was divided; what was left for later."""
    GOAL_TESTS = "goal_tests"
    """What shows that the task is done, and what was considered for it; as JSON."""
    UNSTABLE_TESTS = "unstable_tests"
    """Flaky tests."""
    FORMATTED = "formatted"
    """What `[testing] format_command` changed, or why nothing; in one line."""
    TESTS_TOUCHED = "tests_touched"
    """The files that decide whether tests pass and that the result changes, and the tests that no longer run; as JSON.
    """
    RESTORED_SKIPPED = "restored_skipped"
    """Why there was no run with the tests restored."""
    APPLIED = "applied"
    """The result was applied to the working tree; the paths."""
    TAKEN_BACK = "taken_back"
    """An applied result was undone; the paths."""
    DISCARDED = "discarded"
    """The run's branch and refs were deleted."""
    PRUNED = "pruned"
    """The run was to be deleted to save space, and that was interrupted."""

    # A pass, under its id
    HINT_SHOWN = "hint_shown"
    """The pass is the first that was shown this hint."""
    CONTEXT_OF = "context_of"
    """The pass uses the context of another one, named without its task."""
    PLAN_NOTE = "plan_note"
    """What was corrected in a plan."""
    PLAN_FAULT = "plan_fault"
    """What was wrong with a plan that was refused."""
    DROPPED_FROM_PROMPT = "dropped_from_prompt"
    """An item that was left out so that the prompt fits."""
    TARGET_NOT_SHOWN = "target_not_shown"
    """A file or symbol that the step has to change but the prompt had no space for."""
    TARGET_UNTOUCHED = "target_untouched"
    """Targets of the step that an applied attempt did not change."""
    NOT_CHOSEN = "not_chosen"
    """Why another candidate was chosen instead of this attempt."""


class TimeKind(StrEnum):
    """What a span of time was spent on. Values are stored in records, so they must not change."""

    START = "start"
    """From Enter until the command begins its work: Python, imports, configuration."""
    PREFLIGHT = "preflight"
    """The model server is asked for its models."""
    GIT = "git"
    SANDBOX = "sandbox"
    """The sandbox is set up, and linked folders are copied in."""
    INDEX = "index"
    """The repository's index is brought up to date, in a separate process."""
    INDEX_COPY = "index_copy"
    """The run waits for its copy of the index, and keeps it up to date."""
    MODEL_LOAD = "model_load"
    """The server loads a model before a question needs it."""
    TESTS = "tests"
    RETRIEVAL = "retrieval"
    """A context is made, including the calls for it."""
