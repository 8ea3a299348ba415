"""What a pass asks of retrieval: the task, what is known about it, and what a failed attempt showed to be missing."""

from dataclasses import dataclass, field
from typing import Literal

from clean_room_agent.artifacts.evidence import Evidence, StackFrame

Role = Literal["classifier", "reasoning", "coding"]
Mode = Literal["plan", "implement", "train_plan", "curate_data"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """One pass's wish for a context package."""

    pass_id: str
    mode: Mode
    role: Role
    """The role of the model that will read the package: it sets the budget."""
    task: str
    """The user's words, unchanged."""
    focus: str = ""
    """What this pass is about beyond the task: the part's or the step's description."""
    files: tuple[str, ...] = ()
    """Named by a plan: tier 0, in without asking."""
    symbols: tuple[str, ...] = ()
    """Named by a plan."""
    evidence: Evidence = field(default_factory=Evidence)
    extra_reserved: int = 0
    """Tokens kept from content beyond the configured reserve, for a longer answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskQuery:
    """A task as retrieval understands it; everything named here exists in the index."""

    intent: str = ""
    """What must be different afterwards, in a model's words; kept for whoever reads the session."""
    kind: str = ""
    """bug, feature, refactoring, test, docs, performance, or "" where nothing says so."""
    keywords: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    areas: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    """Symbols of the index that the task's own words name: in without asking."""
    error_messages: tuple[str, ...] = ()
    frames: tuple[StackFrame, ...] = ()
    test_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RefinementRequest:
    """What a failed attempt showed to be missing from its context."""

    reason: str
    missing_files: tuple[str, ...] = ()
    missing_symbols: tuple[str, ...] = ()
    missing_tests: tuple[str, ...] = ()
    whole_files: tuple[str, ...] = ()
    """Files that were shown in part, and are to be shown whole without asking."""
    error_signatures: tuple[str, ...] = ()

    def is_empty(self) -> bool:
        """Whether the request names nothing to look for."""
        return not (self.missing_files or self.missing_symbols or self.missing_tests or self.whole_files)
