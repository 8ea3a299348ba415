"""The Protocol of a retrieval stage, the types that pass from one stage to the next, and the log of their decisions.

A stage narrows the context: it gets the context so far, its data source, the analysed task and a judge, and returns the
context for the next stage. It keeps no state. To add one: write `<name>_stage.py`, add its line to `STAGES` in `retriever.py`,
and add `tests/retrieval/test_<name>_stage.py`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import (
    ContextPackage,
    ContextRequest,
    Detail,
    Judgment,
    Section,
    Subject,
    TaskQuery,
)
from clean_room_agent.db.raw.passes import DecisionRow, append_decisions, list_decisions_of_pass
from clean_room_agent.db.raw.record import Record
from clean_room_agent.retrieval.stage_source import FileText, RepositorySource

if TYPE_CHECKING:  # what a query without a model does not need, and 200 ms to import
    from clean_room_agent.llm.answers import Choice
    from clean_room_agent.llm.prompt import Prompt
    from clean_room_agent.retrieval.prompts import BatchInputs, SingleInputs, SortedAnswer

SortedT = TypeVar("SortedT", bound="SortedAnswer")


class Candidate(Struct, frozen=True, kw_only=True):
    """A file that may matter, with the evidence for it."""

    path: str
    file_id: int
    tier: int
    """0 named by a plan, 1 by the task or a failure, 2 imports or is imported, 3 changes together, 4 search or metadata."""
    score: float
    """0..1 within one request; larger is nearer."""
    reasons: tuple[str, ...]

    @property
    def subject(self) -> "Subject":
        """The file, as the subject of a decision."""
        return Subject(path=self.path, file_id=self.file_id, tier=self.tier, score=self.score)


class Selection(Struct, frozen=True, kw_only=True):
    """A file, or a piece of one, to be shown if it fits."""

    path: str
    symbol: str | None = None
    """Name of the piece (see `pieces.py`); None for the whole file."""
    start_line: int
    """1-based, inclusive."""
    end_line: int
    detail: Detail
    tier: int
    score: float
    reason: str
    outline: str = ""
    """What is shown where the detail is not primary; "" for its own lines (those of a failing test, which is not edited)."""
    section: Section = "code"

    @classmethod
    def of_file(
        cls, text: FileText, detail: Detail, *, tier: int, score: float, reason: str, outline: str = ""
    ) -> "Selection":
        """The whole file."""
        last = len(text.lines)
        return cls(
            path=text.path,
            start_line=1,
            end_line=last,
            detail=detail,
            tier=tier,
            score=score,
            reason=reason,
            outline=outline,
        )

    def subject(self, file_id: int | None = None) -> Subject:
        """The file or piece, as the subject of a decision."""
        return Subject(path=self.path, symbol=self.symbol, file_id=file_id, tier=self.tier, score=self.score)


class Verdict(Struct, frozen=True, kw_only=True):
    """A judge's verdict on one option."""

    label: str
    """One of the answer's labels; "" for out."""
    reason: str
    judgment: Judgment = Judgment()
    """What the model said, in numbers; the default where none was asked."""
    taken: bool = False
    """Whether it was let in although the judge said no, because nothing else was in."""


class Decision(Struct, frozen=True, kw_only=True):
    """For the record: what was included or excluded, by whom, and why."""

    stage: str
    subject: Subject = Subject()
    """The default stands for no file in particular."""
    included: bool = False
    detail: Detail | Literal[""] = ""
    reason: str
    verdict: Verdict | None = None
    """What a model, or a threshold in its place, said; None where the program decided."""

    @classmethod
    def without_asking(cls, stage: str, selection: Selection, file_id: int | None = None) -> "Decision":
        """That the selection is in, for its own reason."""
        reason = f"in without asking: {selection.reason}"
        subject = selection.subject(file_id)
        return cls(stage=stage, subject=subject, included=True, detail=selection.detail, reason=reason)


class StageContext(Struct, frozen=True, kw_only=True):
    """The state of a retrieval after a stage."""

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
    """What is to be shown; in a refinement, until the stage has run, what was selected before."""
    detail_chosen: bool = False
    """Whether a stage has chosen what is shown of each file; without one, files in scope are shown whole."""
    decisions: tuple[Decision, ...] = ()
    """Of all stages so far, in order."""


class StageOutputs(Struct, frozen=True, kw_only=True):
    """What the stages decided: enough to assemble the package again."""

    files: tuple[Candidate, ...]
    selections: tuple[Selection, ...]


class Remembered(Struct, frozen=True, kw_only=True):
    """What the session keeps of a finished retrieval."""

    query: TaskQuery
    outputs: StageOutputs
    package: ContextPackage


class Option(Struct, frozen=True, kw_only=True):
    """One thing to be judged."""

    key: str
    """Names it in the record: a path, or `path:line :: symbol`."""
    name: str
    """Names it in a prompt: a path, or `path :: symbol`."""
    text: str
    """What the model is shown of it: code, or lines of it, after what else is known."""
    score: float
    """0..1; it stands in for the model's opinion when none is asked."""


class Judge(Protocol):
    """Decides what rules and search cannot: a model, or a score threshold in its place."""

    def sort(
        self,
        prompt: "Prompt[BatchInputs, SortedT]",
        options: Sequence[Option],
        /,
        *,
        labels: tuple[str, ...],
        stage: str,
        chosen: tuple[str, ...] = (),
        remark: str = "",
    ) -> tuple[Verdict, ...]:
        """Give one verdict per option, in order; an option without a readable verdict is out.

        `labels` are those of the answer, from the strongest in favour of an option to the weakest.
        """

    def choose(
        self,
        prompt: "Prompt[SingleInputs, Choice]",
        options: Sequence[Option],
        /,
        *,
        labels: tuple[str, ...],
        stage: str,
        chosen: tuple[str, ...] = (),
    ) -> tuple[Verdict, ...]:
        """Like `sort`, with one question per option. The answer is one word: one of `labels`, or one that means out."""


class RetrievalStage(Protocol):
    """One stage, which narrows the context."""

    @property
    def name(self) -> str:
        """Its name in `STAGES`, in `--stages` and in the record."""

    def run(
        self, context: StageContext, source: RepositorySource, query: TaskQuery, judge: Judge
    ) -> StageContext:
        """Return the context after this stage, with this stage's decisions appended."""


class DecisionLog:
    """Writes the decisions of a task's passes to the record."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._from_earlier_try: dict[str, Counter[DecisionRow]] = {}
        """By pass: the rows that an interrupted try left in the record and this one has not come to yet."""

    def post(self, pass_id: str, decisions: Iterable[Decision]) -> None:
        """Queue the decisions for the record, in order."""
        rows = self._new_rows(pass_id, decisions)
        if rows:
            self._record.post(append_decisions, rows)

    def write(self, pass_id: str, decisions: Iterable[Decision]) -> None:
        """Commit the decisions, and all that were posted before them."""
        self._record.write(append_decisions, self._new_rows(pass_id, decisions))

    def _new_rows(self, pass_id: str, decisions: Iterable[Decision]) -> tuple[DecisionRow, ...]:
        if pass_id not in self._from_earlier_try:
            known = self._record.write(list_decisions_of_pass, pass_id)
            self._from_earlier_try[pass_id] = Counter(replace(row, id=0, timestamp="") for row in known)
        known_rows = self._from_earlier_try[pass_id]
        now = self._record.now()
        new = []
        for decision in decisions:
            row = DecisionRow(
                task_id=pass_id,
                stage=decision.stage,
                subject=decision.subject,
                included=decision.included,
                detail=decision.detail,
                reason=decision.reason,
                judgment=decision.verdict.judgment if decision.verdict else Judgment(),
                timestamp="",
            )
            if known_rows[row] > 0:
                known_rows[row] -= 1
            else:
                new.append(replace(row, timestamp=now))
        return tuple(new)
