"""What `-v` and `-vv` add while a run goes on: after each pass, what the record has of it."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.calls import CallRow, list_calls
from clean_room_agent.db.raw.decisions import DecisionRow, list_decisions
from clean_room_agent.orchestrator.events import Event, PassFinished

INDENT = "      "


class RecordView:
    """An `Observer` that writes a line for each decision of a finished pass, and from level 2 on for each request."""

    def __init__(self, raw: Path, write: Callable[[str], None], *, level: int) -> None:
        self._raw = raw
        self._write = write
        self._level = level
        self._last_decision = 0
        self._last_call = 0

    def notice(self, event: Event) -> None:
        """Write what the pass has that was not written yet: a retry's id begins with its pass's."""
        if not isinstance(event, PassFinished):
            return
        with contextlib.closing(connect_file("raw", self._raw, read_only=True)) as conn:
            decisions = [row for row in list_decisions(conn, event.pass_id) if row.id > self._last_decision]
            calls = list_calls(conn, event.pass_id) if self._level > 1 else ()
        for decision in decisions:
            self._write(INDENT + decision_line(decision))
            self._last_decision = decision.id
        for call in calls:
            if call.id > self._last_call:
                self._write(INDENT + call_line(call))
                self._last_call = call.id


def decision_line(row: DecisionRow) -> str:
    """What became of a candidate, and why."""
    mark = "in " if row.included else "out"
    what = f"{row.path} :: {row.symbol}" if row.symbol else row.path
    return f"{row.stage} {mark} {what + ': ' if what else ''}{row.reason}"


def call_line(row: CallRow) -> str:
    """A request in figures."""
    item = f" {row.item}" if row.item else ""
    tokens = f"{row.prompt_tokens or row.estimated_tokens:,} + {row.completion_tokens or 0:,} tokens"
    ending = row.error or row.finish
    return f"call {row.id} {row.call_type}{item}: {row.model}, {tokens}, {row.latency_ms} ms, {ending}"
