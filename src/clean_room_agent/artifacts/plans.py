"""Plans: the data that the orchestrator iterates over, and the file that a person reviews; and what was decided on the
way to one: by whom, and why.

All are versioned JSON. Unknown fields are kept; a missing one is an error that names it.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

FORMAT_VERSION = 1
FileRole = Literal["modify", "create", "delete"]
ChangeAction = Literal["modify", "add", "delete", "rename"]
FailureCategory = Literal["compile_error", "test_failure", "patch_failure", "runtime_error", "unknown"]
DoctorDecision = Literal["retry_with_fix", "replan", "skip_step", "fatal_error", "rollback_provider"]
"""What a doctor decides about a step that fails."""
MAX_MESSAGE = 500
"""Characters of a failure's words."""


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
    """The definitions that it changes, where the plan was made of them."""


class MetaPlan(Artifact):
    """The task divided into parts."""

    version: int = FORMAT_VERSION
    task_summary: str
    parts: tuple[Part, ...]
    rationale: str = ""


class PlanStep(Artifact):
    """One change that the tests judge on its own."""

    id: str
    description: str
    target_files: tuple[TargetFile, ...]
    target_symbols: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    any_of_files: bool = False
    """Whether the change may lie in some of the files alone: nobody has said in which."""


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
    as_steps: bool = False
    """Whether it is followed step by step, as a plan is that a person wrote; else all of it is one step."""


class PlanVerdict(Artifact):
    """One yes or no."""

    question: str
    """The name of the prompt that asks it, also where nobody had to be asked."""
    item: str
    """What it is about, by ids: `c1 c2`, `p2 p1`, `s3`."""
    yes: bool
    reason: str
    call_id: int | None = None
    """The call that judged; None where no model did."""
    readable: bool = True
    """Whether the answer was; else a stated rule decided."""
    confidence: float | None = None
    """Of the word that the model said; None where it gave no probabilities, as the next three."""
    probability: float | None = None
    """Of yes."""
    neutral: float | None = None
    """Of yes, asked about nothing; None where that is not known."""
    calibrated: float | None = None
    """Log-odds of yes, less those about nothing."""


class FailureSignal(Artifact):
    """Something that went wrong in a step, in the words of whoever noticed."""

    category: FailureCategory
    message: str
    """At most `MAX_MESSAGE` characters; "" where there were no words."""
    source: str
    """The test that failed, else the attempt's outcome."""


class PlanVerdicts(Artifact):
    """How a plan came about: what it is made of, by id, and what was decided about that."""

    version: int = FORMAT_VERSION
    items: tuple[tuple[str, str], ...] = ()
    """Id and words of each change point or step."""
    verdicts: tuple[PlanVerdict, ...] = ()


class AdjustmentVerdicts(Artifact):
    """How an adjustment came about."""

    version: int = FORMAT_VERSION
    failures: tuple[FailureSignal, ...] = ()
    """Named f1, f2, ... in the verdicts."""
    verdicts: tuple[PlanVerdict, ...] = ()
    invalid: tuple[str, ...] = ()
    """Ids of steps that go."""
    must_change: tuple[str, ...] = ()
    """Ids of steps that have to change because of a failure."""
    unexplained: tuple[str, ...] = ()
    """Failures that no step caused."""
    new_step_for: tuple[str, ...] = ()
    """Those of them that need a new step."""
