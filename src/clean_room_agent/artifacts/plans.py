"""Plans: the data that the orchestrator iterates over, and the file that a person reviews.

All are versioned JSON. Unknown fields are kept; a missing one is an error that names it.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

FORMAT_VERSION = 1
FileRole = Literal["modify", "create", "delete"]
ChangeAction = Literal["modify", "add", "delete", "rename"]


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
