"""Writes retrieval's decisions to the record, each once, also when a resumed run repeats a pass."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from clean_room_agent.artifacts.context import Judgment
from clean_room_agent.db.raw.passes import DecisionRow, append_decisions, list_decisions_of_pass
from clean_room_agent.db.raw.record import Record
from clean_room_agent.retrieval.stage import Decision, Verdict


class DecisionLog:
    """Writes the decisions of a task's passes to the record."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._from_earlier_try: dict[str, Counter[DecisionRow]] = {}
        """By pass: the rows that an interrupted try left in the record and this one has not come to yet."""

    def post(self, pass_id: str, decisions: Iterable[Decision]) -> None:
        """Queue the decisions for the record, in their order."""
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
