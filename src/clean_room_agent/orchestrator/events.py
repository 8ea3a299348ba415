"""Events that a run reports to its observer (the live view, `--events`), in the order in which they happen."""

from dataclasses import dataclass
from typing import Protocol

from clean_room_agent.artifacts.outcomes import OrchestratorResult, PassType
from clean_room_agent.git.generated import Generated
from clean_room_agent.llm.call_events import CallEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """The snapshot is taken and the worktree stands."""

    task_id: str
    task: str
    models: tuple[tuple[str, str, int], ...]
    """(role, model tag, window in tokens)."""
    remote: str
    """The host that prompts go to; "" where none leaves this machine."""
    base_commit: str
    uncommitted: tuple[str, ...]
    """Paths of uncommitted work that the snapshot carries."""
    excluded: tuple[tuple[str, str], ...]
    """(path, why) of what the snapshot leaves out."""
    generated: tuple[Generated, ...] = ()
    """Folders that it leaves out, as tools made them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something the user should know that changes nothing."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestsStarted:
    """A test command is about to run."""

    what: str
    """baseline, final, or "" within a step."""
    expected_seconds: float = 0.0
    """What the same command took when it last ran in this run; 0 where it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestsProgress:
    """How far the tests are, where their runner says so."""

    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TestsFinished:
    """A test command ended."""

    what: str
    passed: int
    failed: int
    known: bool
    """Whether the runner's report could be read, so that the counts say something."""
    success: bool
    seconds: float
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexProgress:
    """So many files of those that changed are indexed."""

    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PassStarted:
    """A pass begins."""

    pass_type: PassType
    pass_id: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PassProgress:
    """Where a pass stands, in a few words."""

    doing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PassFinished:
    """A pass ended."""

    pass_type: PassType
    pass_id: str
    title: str
    success: bool
    detail: str
    calls: int
    prompt_tokens: int
    """Of the fullest prompt of the pass."""
    window: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """The run's result stands in the record."""

    result: OrchestratorResult


Event = (
    RunStarted
    | Note
    | TestsStarted
    | TestsProgress
    | TestsFinished
    | IndexProgress
    | PassStarted
    | PassProgress
    | PassFinished
    | RunFinished
    | CallEvent
)


class Observer(Protocol):
    """Is notified of a run's events; it must not raise and cannot change anything. Model calls come from any thread."""

    def notice(self, event: Event) -> None:
        """Take note of `event`."""


class Nobody:
    """Watches, and does nothing with it."""

    def notice(self, event: Event) -> None:
        """Nothing comes of it."""
        del event
