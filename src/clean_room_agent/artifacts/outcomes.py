"""How attempts, passes and runs end: closed vocabularies, and the results that carry them."""

from dataclasses import dataclass
from enum import StrEnum

from clean_room_agent.errors import BudgetSpent, CraError, Interrupted


class AttemptOutcome(StrEnum):
    """How one attempt at a step ended."""

    APPLIED_AND_PASSED = "applied_and_passed"
    NO_EDITS = "no_edits"
    UNREADABLE = "unreadable"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    TESTS_FAILED = "tests_failed"
    TIMED_OUT = "timed_out"
    INSUFFICIENT_CONTEXT = "insufficient_context"
    INFRASTRUCTURE = "infrastructure"


class RunStatus(StrEnum):
    """How a run stands."""

    RUNNING = "running"
    INTERRUPTED = "interrupted"
    NEEDS_HUMAN = "needs_human"
    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"


class PassType(StrEnum):
    """What a pass of a run does."""

    META_PLAN = "meta_plan"
    PART_PLAN = "part_plan"
    IMPLEMENT = "implement"
    ADJUST = "adjust"


@dataclass(frozen=True, slots=True, kw_only=True)
class PassResult:
    """One pass of a run."""

    pass_type: PassType
    pass_id: str
    part_id: str = ""
    step_id: str = ""
    success: bool
    detail: str = ""
    fallback: bool = False
    """Whether the pass was to plan, no valid plan came, and what it ended with is the program's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrchestratorResult:
    """A whole run."""

    task_id: str
    status: RunStatus
    reason: str = ""
    """Why the status is not complete, in one line; "" when it is."""
    total_parts: int = 0
    total_steps: int = 0
    parts_completed: int = 0
    steps_completed: int = 0
    cumulative_diff: str = ""
    branch: str = ""
    passes: tuple[PassResult, ...] = ()


def status_of(error: BaseException) -> RunStatus:
    """How a run stands that this error ended."""
    if isinstance(error, KeyboardInterrupt | Interrupted):
        return RunStatus.INTERRUPTED
    return RunStatus.PARTIAL if isinstance(error, BudgetSpent) else RunStatus.FAILED


def reason_of(error: BaseException) -> str:
    """Why it did, in words."""
    if isinstance(error, CraError):
        return error.message
    return "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
