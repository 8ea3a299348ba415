"""What was decided on the way to a plan: about two changes, a step, a failure, a goal; by whom, and why."""

from typing import Literal

from clean_room_agent.artifacts.plans import FORMAT_VERSION, Artifact

FailureCategory = Literal["compile_error", "test_failure", "patch_failure", "runtime_error", "unknown"]
MAX_MESSAGE = 500
"""Characters of a failure's words."""


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
