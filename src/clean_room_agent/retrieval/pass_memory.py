"""What a retrieval leaves behind: its decisions in the record, and in the session what a refinement starts from."""

from collections import Counter
from collections.abc import Collection, Iterable

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextPackage, Judgment, TaskQuery
from clean_room_agent.artifacts.names import attempts_up_to
from clean_room_agent.db.raw.passes import DecisionRow, append_decisions, list_decisions_of_pass
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.session import Session, States
from clean_room_agent.errors import RecordError
from clean_room_agent.json_values import from_plain, to_plain
from clean_room_agent.retrieval.stage import Candidate, Decision, Selection, StageContext, Verdict

CHANGES = "to_change"
Changes = tuple[tuple[str, str], ...]
"""(path, name) of each."""


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
            row = _decision_row(pass_id, decision)
            if known_rows[row] > 0:
                known_rows[row] -= 1
            else:
                new.append(replace(row, timestamp=now))
        return tuple(new)


def _decision_row(pass_id: str, decision: Decision) -> DecisionRow:
    return DecisionRow(
        task_id=pass_id,
        stage=decision.stage,
        subject=decision.subject,
        included=decision.included,
        detail=decision.detail,
        reason=decision.reason,
        judgment=_judgment(decision.verdict),
        timestamp="",
    )


def _judgment(verdict: Verdict | None) -> Judgment:
    if verdict is None:
        return Judgment()
    weight = verdict.weight
    return Judgment(
        call_id=verdict.call_id,
        confidence=verdict.confidence,
        probability=weight.probability if weight else None,
        neutral=weight.neutral if weight else None,
        calibrated=weight.calibrated if weight else None,
    )


class StageOutputs(Struct, frozen=True, kw_only=True):
    """What the stages decided: enough to assemble the package again."""

    files: tuple[Candidate, ...]
    selections: tuple[Selection, ...]


class Remembered(Struct, frozen=True, kw_only=True):
    """One finished retrieval."""

    pass_id: str
    query: TaskQuery
    outputs: StageOutputs
    package: ContextPackage


def remember_query(states: States, query: TaskQuery) -> None:
    """Store the analysed task."""
    states.set_state("task_query", to_plain(query))


def remember_outputs(states: States, context: StageContext) -> None:
    """Store what the stages decided."""
    outputs = StageOutputs(files=context.files, selections=context.selections)
    states.set_state("stage_outputs", to_plain(outputs))


def remember_package(states: States, package: ContextPackage) -> None:
    """Store the package."""
    states.set_state("final_context", to_plain(package))


def remember_changes(states: States, changes: Collection[tuple[str, str]]) -> None:
    """Store (path, name) of the pieces that the pass judged to be changed."""
    states.set_state(CHANGES, [list(change) for change in sorted(changes)])


def recall_changes(session: Session, task_id: str) -> frozenset[tuple[str, str]]:
    """(path, name) of the pieces that the task's planning passes judged to be changed."""
    keys = [key for key in session.list_keys(f"{task_id}:") if key.endswith(f"/{CHANGES}")]
    return frozenset(change for key in keys for change in from_plain(session.get_state(key), Changes))


def recall(session: Session, pass_id: str) -> Remembered:
    """The retrieval of the pass or, failing that, of the latest attempt before it (`…:retry_2`, `…:retry_1`, `…`).

    Raises:
        RecordError: none of them stored a package in the session, or what is there cannot be read.
    """
    for earlier in reversed(attempts_up_to(pass_id)):
        states = session.for_pass(earlier)
        kept = {key: states.get_state(key) for key in ("task_query", "stage_outputs", "final_context")}
        if None in kept.values():
            continue
        try:
            return Remembered(
                pass_id=earlier,
                query=from_plain(kept["task_query"], TaskQuery),
                outputs=from_plain(kept["stage_outputs"], StageOutputs),
                package=from_plain(kept["final_context"], ContextPackage),
            )
        except ValueError as exc:
            raise RecordError(f"the session's context of pass {earlier} cannot be read: {exc}") from exc
    raise RecordError(
        f"the session holds no context for pass {pass_id}", hint="retrieve it before it is refined"
    )
