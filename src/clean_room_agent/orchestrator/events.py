"""Events that a run reports to its observer (the live view, `--events`), in the order in which they happen."""

from typing import Protocol

from msgspec import Struct

from clean_room_agent.artifacts.outcomes import OrchestratorResult, PassType
from clean_room_agent.git.generated import Generated
from clean_room_agent.llm.call_events import CallEvent


class RunStarted(Struct, frozen=True, kw_only=True):
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


class Note(Struct, frozen=True, kw_only=True):
    """Something the user should know that changes nothing."""

    text: str


class TestsStarted(Struct, frozen=True, kw_only=True):
    """A test command is about to run."""

    what: str
    """baseline, final, or "" within a step."""
    expected_seconds: float = 0.0
    """What the same command took when it last ran in this run; 0 where it did not."""


class TestsProgress(Struct, frozen=True, kw_only=True):
    """How far the tests are, where their runner says so."""

    percent: int


class TestsFinished(Struct, frozen=True, kw_only=True):
    """A test command ended."""

    what: str
    passed: int
    failed: int
    known: bool
    """Whether the runner's report could be read, so that the counts say something."""
    success: bool
    seconds: float
    detail: str = ""


class IndexProgress(Struct, frozen=True, kw_only=True):
    """So many files of those that changed are indexed."""

    done: int
    total: int


class PassStarted(Struct, frozen=True, kw_only=True):
    """A pass begins."""

    pass_type: PassType
    pass_id: str
    title: str


class PassProgress(Struct, frozen=True, kw_only=True):
    """Where a pass stands, in a few words."""

    doing: str


class PassFinished(Struct, frozen=True, kw_only=True):
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


class RunFinished(Struct, frozen=True, kw_only=True):
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
