"""Events that a run reports to its observer (the live view, `--events`), in the order in which they happen."""

from typing import Protocol

from msgspec import Struct

from clean_room_agent.artifacts.model_calls import CallEvent
from clean_room_agent.artifacts.outcomes import OrchestratorResult, PassType
from clean_room_agent.git.generated import Generated


class RunStarted(Struct, frozen=True, kw_only=True):
    """The snapshot is taken and the worktree exists."""

    task_id: str
    task: str
    models: tuple[tuple[str, str, int], ...]
    """(role, model tag, window in tokens)."""
    remote: str
    """The remote host that prompts go to; "" if none leaves this machine."""
    base_commit: str
    uncommitted: tuple[str, ...]
    """Paths of uncommitted work in the snapshot."""
    excluded: tuple[tuple[str, str], ...]
    """(path, why) of what the snapshot leaves out."""
    generated: tuple[Generated, ...] = ()
    """Folders that it leaves out because tools created them."""


class Note(Struct, frozen=True, kw_only=True):
    """Something the user should know that changes nothing."""

    text: str


LOOKING = "looking for goal tests"
"""What runs of tests are for that try calls of the task's words, and new tests at the base."""


def tests_in_words(what: str) -> str:
    """A run of tests, by what an event says that it is."""
    return what if " " in what else f"{what} tests".strip()


class TestsStarted(Struct, frozen=True, kw_only=True):
    """A test command is about to run."""

    what: str
    """The kind of test (baseline, final) or, in several words, what is done; "" within a step."""
    expected_seconds: float = 0.0
    """Seconds that the same command took when it last ran in this run; 0 if it has not run."""


class TestsFinished(Struct, frozen=True, kw_only=True):
    """A test command ended."""

    what: str
    passed: int
    failed: int
    known: bool
    """Whether the runner's report could be read, so that the counts are meaningful."""
    success: bool
    seconds: float
    detail: str = ""


class IndexProgress(Struct, frozen=True, kw_only=True):
    """How many of the changed files are indexed."""

    done: int
    total: int


class PassStarted(Struct, frozen=True, kw_only=True):
    """A pass begins."""

    pass_type: PassType
    pass_id: str
    title: str


class PassProgress(Struct, frozen=True, kw_only=True):
    """What a pass is doing, in a few words."""

    doing: str


class CandidateDrawn(Struct, frozen=True, kw_only=True):
    """An answer's change, before it is tested."""

    pass_id: str
    number: int
    """Of the attempt or the candidate, from 1."""
    diff: str
    """Not empty."""


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
    """The run's result is recorded."""

    result: OrchestratorResult


Event = (
    RunStarted
    | Note
    | TestsStarted
    | TestsFinished
    | IndexProgress
    | PassStarted
    | PassProgress
    | CandidateDrawn
    | PassFinished
    | RunFinished
    | CallEvent
)


class Observer(Protocol):
    """Is notified of a run's events; it must not raise and cannot change anything. Model calls come from any thread."""

    def notice(self, event: Event) -> None:
        """Take note of `event`."""


class Nobody:
    """An observer that ignores all events."""

    def notice(self, event: Event) -> None:
        """Ignore the event."""
        del event
