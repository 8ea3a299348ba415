"""How attempts, passes and runs end, what may happen to them on the way, and what their time goes to: closed vocabularies, and
the results that carry them.
"""

from enum import StrEnum

from msgspec import Struct

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


class PassResult(Struct, frozen=True, kw_only=True):
    """One pass of a run."""

    pass_type: PassType
    pass_id: str
    part_id: str = ""
    step_id: str = ""
    success: bool
    detail: str = ""
    fallback: bool = False
    """Whether the pass was to plan, no valid plan came, and what it ended with is the program's own."""


class OrchestratorResult(Struct, frozen=True, kw_only=True):
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


class EventKind(StrEnum):
    """What happened to a run, or within one of its passes. Values are in old records, so they stay as they are."""

    # The run, under the task's id
    FLAGS = "flags"
    """What the command line said over the configuration, as JSON."""
    PLAN_GIVEN = "plan_given"
    """A plan that the user gave, as JSON."""
    META_PLAN_GIVEN = "meta_plan_given"
    """The same of a plan of parts."""
    RESUMED = "resumed"
    """The run went on; what had changed in the configuration, in words."""
    RESUMED_WITH = "resumed_with"
    """The whole configuration of a run that went on, as JSON."""
    HINT = "hint"
    """What the user said to a run that went on."""
    NOTE = "note"
    """Something that the user was told and that changed nothing."""
    DESCRIBED_BY = "described_by"
    """The descriptions (ids, as JSON) that the files in the run's index have."""
    PART_BLOCKED = "part_blocked"
    """A part was not begun, because one that it needs is not done."""
    REPLAN = "replan"
    """A part is planned again; what failed in its last plan."""
    SCOPE_REDUCED = "scope_reduced"
    """A step was divided; what was left for later."""
    UNSTABLE_TESTS = "unstable_tests"
    """Tests that come and go by themselves."""
    TESTS_TOUCHED = "tests_touched"
    """Which files that decide whether tests pass the result changes, and which tests no longer run; JSON."""
    RESTORED_SKIPPED = "restored_skipped"
    """Why there was no run with the tests restored."""
    APPLIED = "applied"
    """The result was applied to the working tree; the paths."""
    TAKEN_BACK = "taken_back"
    """An applied result was taken back; the paths."""
    DISCARDED = "discarded"
    """The run's branch and refs were deleted."""
    PRUNED = "pruned"
    """Data of the run was deleted to save space; which kinds, as JSON."""

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
    """A file or symbol that the step is to change and the prompt had no space for."""
    TARGET_UNTOUCHED = "target_untouched"
    """Targets of the step that an applied attempt did not change."""
    SCAFFOLD = "scaffold"
    """The scaffold that the attempts at the step are made from."""
    SCAFFOLD_DROPPED = "scaffold_dropped"
    """Why there is no scaffold."""
    NOT_CHOSEN = "not_chosen"
    """Why another candidate was chosen in place of this attempt."""


class TimeKind(StrEnum):
    """Values are in old records, so they stay as they are."""

    START = "start"
    """From Enter until the command begins its work: Python, imports, configuration."""
    PREFLIGHT = "preflight"
    """The model server is asked for its models."""
    GIT = "git"
    SANDBOX = "sandbox"
    """It is set up, and linked folders are copied in."""
    INDEX = "index"
    """The repository's index is brought up to date, in a process beside the run."""
    INDEX_COPY = "index_copy"
    """The run waits for the index, copies it, and keeps its copy up to date."""
    MODEL_LOAD = "model_load"
    """The server loads a model that no question waits for yet."""
    TESTS = "tests"
    RETRIEVAL = "retrieval"
    """A context is made; the calls for it are part of it."""
