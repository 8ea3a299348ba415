"""What the user asked for: the task's words, given plans and evidence, hints added since, and the configured limits."""

import json
from typing import TYPE_CHECKING

from msgspec import Struct

from clean_room_agent.artifacts.goals import NOTHING_GIVEN, GivenEvidence
from clean_room_agent.artifacts.names import relative_pass
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.json_values import to_plain
from clean_room_agent.orchestrator.run_config import (
    EditConfig,
    EvidenceConfig,
    OrchestratorConfig,
    RecoveryConfig,
    SolveConfig,
)

if TYPE_CHECKING:
    from clean_room_agent.artifacts.plans import MetaPlan, PartPlan


class Hint(Struct, frozen=True, kw_only=True):
    """What the user tells a resumed run: every pass from then on is shown it together with the task's words."""

    text: str
    since: str = ""
    """The first pass that was shown it, relative to the task; "" until then."""


class Hints:
    """The hints of a run, in the order in which they were given."""

    def __init__(self, hints: tuple[Hint, ...] = ()) -> None:
        self._waiting = list(hints)
        self._active: list[Hint] = []

    def begin(self, pass_id: str, *, known: bool) -> tuple[str, ...]:
        """The hints that are new to this pass, which is shown them from now on; a `known` pass was done without them."""
        new = tuple(hint for hint in self._waiting if not hint.since and not known)
        due = [hint for hint in self._waiting if hint.since == relative_pass(pass_id) or hint in new]
        self._waiting = [hint for hint in self._waiting if hint not in due]
        self._active += due
        return tuple(hint.text for hint in new)

    def by(self, pass_id: str) -> int:
        """How many hints this pass would be shown if it began next."""
        return len(self._active) + sum(hint.since in {"", relative_pass(pass_id)} for hint in self._waiting)

    def new_to(self, pass_id: str) -> int:
        """How many hints this pass would be the first to be shown if it began next."""
        return self.by(pass_id) - len(self._active)

    @property
    def shown(self) -> int:
        """How many hints passes are shown now."""
        return len(self._active)

    @property
    def unshown(self) -> tuple[str, ...]:
        """The hints that no pass was shown."""
        return tuple(hint.text for hint in self._waiting if not hint.since)

    def with_task(self, description: str) -> str:
        """The description, followed by the hints shown so far."""
        hints = "".join(f"\n\nThe user has added since: {hint.text}" for hint in self._active)
        return description + hints


class PlanGiven(Struct, frozen=True, kw_only=True):
    """What the user gives in addition to the task: a reviewed plan (both None: the run plans by itself), or hints."""

    meta_plan: "MetaPlan | None" = None
    single: "PartPlan | None" = None
    """A plan followed as one atomic step."""
    hints: tuple[Hint, ...] = ()
    evidence: GivenEvidence = NOTHING_GIVEN
    """How the task is judged, and where it is."""

    @property
    def has_plan(self) -> bool:
        """Whether the run follows a plan of the user's."""
        return self.meta_plan is not None or self.single is not None

    @property
    def events(self) -> tuple[tuple[EventKind, str], ...]:
        """The plans and the evidence, as the record keeps them."""
        plans = ((EventKind.PLAN_GIVEN, self.single), (EventKind.META_PLAN_GIVEN, self.meta_plan))
        told = tuple((kind, plan.model_dump_json()) for kind, plan in plans if plan is not None)
        if self.evidence == NOTHING_GIVEN:
            return told
        text = json.dumps(to_plain(self.evidence), ensure_ascii=False)
        return (*told, (EventKind.EVIDENCE_GIVEN, text))

    @property
    def paths(self) -> frozenset[str]:
        """The files that the user names, apart from the task's words."""
        parts = self.meta_plan.parts if self.meta_plan else ()
        paths = {path for part in parts for path in part.affected_files} | set(self.evidence.files)
        if self.single is not None:
            paths.update(target.path for step in self.single.steps for target in step.target_files)
        return frozenset(paths)


class RunLimits(Struct, frozen=True, kw_only=True):
    """The parts of the configuration that limit a run."""

    solve: SolveConfig
    orchestrator: OrchestratorConfig
    edit: EditConfig
    recovery: RecoveryConfig
    evidence: EvidenceConfig = EvidenceConfig()


class Task(Struct, frozen=True, kw_only=True):
    """The task of one run."""

    task_id: str
    description: str
    """In the user's words."""
    hints: Hints
    limits: RunLimits
    given: GivenEvidence = NOTHING_GIVEN
    """How the user says that the task is judged, and where it is."""

    @property
    def words(self) -> str:
        """The task as prompts show it: the user's words, and the hints given since."""
        return self.hints.with_task(self.description)
