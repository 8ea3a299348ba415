"""What a retrieval stage is, and what passes from one to the next.

A stage is one narrowing: it gets the context so far, its data source, the understood task and a judge, and
returns the context that the next stage gets. It keeps nothing. To add one: write `stages/<name>.py`, add its
line to `registry.py`, add `tests/retrieval/stages/test_<name>.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from clean_room_agent.artifacts.package import Detail, Section
from clean_room_agent.artifacts.tasks import ContextRequest, TaskQuery

if TYPE_CHECKING:  # what a query without a model does not need, and 200 ms to import
    from clean_room_agent.llm.answers import Choice
    from clean_room_agent.llm.prompt import Prompt

SourceT_contra = TypeVar("SourceT_contra", contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A file that may matter, with all that speaks for it."""

    path: str
    file_id: int
    tier: int
    """0 named by a plan, 1 by the task or a failure, 2 imports or is imported, 3 changes together, 4 search or metadata."""
    score: float
    """0..1 within one request; larger is nearer."""
    reasons: tuple[str, ...]

    @property
    def subject(self) -> "Subject":
        """The file, for a decision about it."""
        return Subject(path=self.path, file_id=self.file_id, tier=self.tier, score=self.score)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A file, or a piece of one, that is to be shown, before the budget is known to hold it."""

    path: str
    symbol: str | None
    """Name of the piece (see `pieces.py`); None for the whole file."""
    start_line: int
    """1-based, inclusive."""
    end_line: int
    detail: Detail
    tier: int
    score: float
    reason: str
    outline: str = ""
    """What is shown where the detail is not primary; "" means its own lines (a failing test: read, not edited)."""
    section: Section = "code"

    def subject(self, file_id: int | None = None) -> "Subject":
        """The file or piece, for a decision about it."""
        return Subject(path=self.path, symbol=self.symbol, file_id=file_id, tier=self.tier, score=self.score)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """What speaks for one option, of the word that would let it in (see `llm/bias.py`)."""

    probability: float
    neutral: float | None
    """Where the model is asked about nothing; None where that is not known."""
    calibrated: float
    """Log-odds less those about nothing: above 0, more yes than no."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a judge said of one option."""

    label: str
    """One of the answer's labels; "" for out."""
    reason: str
    call_id: int | None = None
    confidence: float | None = None
    """Of the model's own word, where the server gave probabilities."""
    weight: Weight | None = None
    taken: bool = False
    """Whether it is in although the verdict is against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a decision is about: a file or a piece of one, or the whole pass."""

    path: str = ""
    """Or the name that leads to no file; "" for the whole pass."""
    symbol: str | None = None
    file_id: int | None = None
    tier: int = 4
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """For the record: what was let in or kept out, by whom, and why."""

    stage: str
    subject: Subject
    included: bool
    detail: Detail | Literal[""] = ""
    reason: str
    verdict: Verdict | None = None
    """What a model, or a threshold in its place, said; None where the program decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageContext:
    """What is known after a stage."""

    request: ContextRequest
    available_tokens: int
    """What the package may hold, frames included."""
    candidates: tuple[Candidate, ...]
    """Every file found, best first: tier 0 and 1 before the rest, then by score."""
    files: tuple[Candidate, ...] = ()
    """What is in scope, in the same order."""
    to_change: frozenset[tuple[str, str]] = frozenset()
    """Path and name of the pieces that were judged to be changed in an earlier pass of the task."""
    selections: tuple[Selection, ...] = ()
    """What is shown; before that is chosen, what an earlier choice left in."""
    detail_chosen: bool = False
    """Whether a stage has chosen what is shown of each file; without one, files in scope are shown whole."""
    decisions: tuple[Decision, ...] = ()
    """Of all stages so far, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One thing to be judged."""

    key: str
    """Names it in the record: a path, or `path:line :: symbol`."""
    name: str
    """Names it in a prompt: a path, or `path :: symbol`."""
    text: str
    """What speaks for it, as the model is shown it: code, or lines of it, after what else is known."""
    score: float
    """0..1; what stands in for the model's opinion when none is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchInputs:
    """A prompt that sorts numbered options (from 1)."""

    question: str
    """The task and what is known of it: the same bytes in every call of one request (see `questions.py`)."""
    options: tuple[str, ...]
    """Framed, each with its number."""
    chosen: tuple[str, ...] = ()
    """The names of what is in without asking."""
    remark: str = ""
    """What else the prompt has to know, e.g. how many tokens are left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleInputs:
    """A prompt that asks about one option."""

    question: str
    option: str
    """Framed."""
    chosen: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """The names of all that is asked about, the option's own among them: the same in each of the questions."""


class Sorted(Protocol):
    """The answer to a batch prompt."""

    def numbers(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Each label with the numbers of its options; where a number stands twice, the first label counts."""


SortedT = TypeVar("SortedT", bound=Sorted)


class Judge(Protocol):
    """Whoever decides what the deterministic part could not: a model, or score thresholds in its place."""

    def sort(
        self,
        prompt: "Prompt[BatchInputs, SortedT]",
        options: Sequence[Option],
        *,
        labels: tuple[str, ...],
        stage: str,
        chosen: tuple[str, ...] = (),
        remark: str = "",
    ) -> tuple[Verdict, ...]:
        """One verdict an option, in order; an option without a readable verdict is out.

        `labels` are those of the answer, from the one that says most for an option to the one that says least.
        """

    def choose(
        self,
        prompt: "Prompt[SingleInputs, Choice]",
        options: Sequence[Option],
        *,
        labels: tuple[str, ...],
        stage: str,
        chosen: tuple[str, ...] = (),
    ) -> tuple[Verdict, ...]:
        """The same by one question an option whose answer is one of a few words: `labels`, and those that mean out."""


class RetrievalStage(Protocol[SourceT_contra]):
    """One narrowing of the context."""

    @property
    def name(self) -> str:
        """What the registry, `--stages` and the record call it."""

    def run(
        self, context: StageContext, source: SourceT_contra, task: TaskQuery, models: Judge
    ) -> StageContext:
        """The context after this stage; what it decided is appended to the decisions."""
