"""Plans: the data that the orchestrator iterates over, and the file that a person reviews; and the decisions on the way
to one, each with its source and reason.

All are versioned JSON. Unknown fields are kept; a missing one is an error that names it.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

FORMAT_VERSION = 1
FileRole = Literal["modify", "create", "delete"]
ChangeAction = Literal["modify", "add", "delete", "rename"]
FailureCategory = Literal["compile_error", "test_failure", "patch_failure", "runtime_error", "unknown"]
MAX_MESSAGE = 500
"""Characters of a failure's message."""


class Artifact(BaseModel):
    """Frozen, versioned, tolerant of fields that a later version may add."""

    model_config = ConfigDict(extra="allow", frozen=True)


class TargetFile(Artifact):
    """A file that a step changes, and how."""

    path: str
    role: FileRole = "modify"


class Part(Artifact):
    """A piece of the task that can be planned on its own."""

    id: str
    description: str
    affected_files: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    target_symbols: tuple[str, ...] = ()
    """The definitions that it changes, if the plan was made from them."""


class MetaPlan(Artifact):
    """The task divided into parts."""

    version: int = FORMAT_VERSION
    task_summary: str
    parts: tuple[Part, ...]
    rationale: str = ""


class PlanStep(Artifact):
    """One change that the tests judge separately."""

    id: str
    description: str
    target_files: tuple[TargetFile, ...]
    target_symbols: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    any_of_files: bool = False
    """Whether only some of the files may have to change, without saying which."""


class PartPlan(Artifact):
    """A part divided into steps."""

    version: int = FORMAT_VERSION
    part_id: str
    task_summary: str
    steps: tuple[PlanStep, ...]
    rationale: str = ""


class PlanAdjustment(Artifact):
    """What remains of a part, revised; completed steps are not in it and cannot be changed by it."""

    version: int = FORMAT_VERSION
    revised_steps: tuple[PlanStep, ...] = ()
    rationale: str = ""
    changes_made: tuple[str, ...] = ()


class Change(Artifact):
    """One change within a file of a reviewable plan."""

    symbol: str = ""
    action: ChangeAction = "modify"
    description: str
    depends_on: tuple[str, ...] = ()
    depended_by: tuple[str, ...] = ()


class AffectedFile(Artifact):
    """A file of a reviewable plan."""

    path: str
    role: FileRole = "modify"
    changes: tuple[Change, ...] = ()


class PlanEvidence(Artifact):
    """How the user says that the task is judged, and where it is; as `GivenEvidence`."""

    tests: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class PlanArtifact(Artifact):
    """The plan that `cra plan` writes, a person edits, and `cra solve --plan` follows."""

    version: int = FORMAT_VERSION
    task_summary: str
    affected_files: tuple[AffectedFile, ...]
    execution_order: tuple[str, ...] = ()
    rationale: str = ""
    task_id: str
    task: str
    """The user's words, unchanged."""
    model: str
    created_at: str
    meta_plan: MetaPlan
    part_plans: tuple[PartPlan, ...] = Field(default=())
    evidence: PlanEvidence = PlanEvidence()
    as_steps: bool = False
    """Whether it is followed step by step, like a handwritten plan; otherwise all of it is one step."""


class PlanVerdict(Artifact):
    """One yes or no."""

    question: str
    """The name of the prompt for it, even if no model had to be asked."""
    item: str
    """What it is about, by ids: `c1 c2`, `p2 p1`, `s3`."""
    yes: bool
    reason: str
    call_id: int | None = None
    """The call that judged; None if no model did."""
    readable: bool = True
    """Whether the answer was readable; otherwise a stated rule decided."""
    confidence: float | None = None
    """Of the word that the model said; None, like the next three, if it gave no probabilities."""
    probability: float | None = None
    """Of yes."""
    neutral: float | None = None
    """Of yes when asked about nothing; None if unknown."""
    calibrated: float | None = None
    """Log-odds of yes, minus those when asked about nothing."""


class FailureSignal(Artifact):
    """Something that went wrong in a step, with the message that reported it."""

    category: FailureCategory
    message: str
    """At most `MAX_MESSAGE` characters; "" if there was no message."""
    source: str
    """The failing test, or else the attempt's outcome."""


class AdjustmentVerdicts(Artifact):
    """How an adjustment was made."""

    version: int = FORMAT_VERSION
    failures: tuple[FailureSignal, ...] = ()
    """Named f1, f2, ... in the verdicts."""
    verdicts: tuple[PlanVerdict, ...] = ()
    invalid: tuple[str, ...] = ()
    """Ids of steps that are dropped."""
    must_change: tuple[str, ...] = ()
    """Ids of steps that have to change because of a failure."""
    unexplained: tuple[str, ...] = ()
    """Failures that no step caused."""
    new_step_for: tuple[str, ...] = ()
    """Those of them that need a new step."""
