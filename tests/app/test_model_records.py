"""What the model client keeps in the record."""

from collections.abc import Callable
from typing import Any, cast

from tests.db.raw.samples import NOW, call

from clean_room_agent.app.model_records import RecordedProofs, RecordSink
from clean_room_agent.artifacts.model_calls import AnswerReading
from clean_room_agent.db.raw import model_measurements
from clean_room_agent.db.raw.record import Record
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.window_probe import ProbedServer
from clean_room_agent.orchestrator.budget import Meter

SERVER = ProbedServer(
    provider="ollama", base_url="http://127.0.0.1:1", model="m", model_digest="", window=4096
)


class MemoryRecord:
    """Keeps what is written, in order."""

    def __init__(self) -> None:
        self.written: list[Any] = []

    def now(self) -> str:
        return NOW

    def write(self, _event: Callable[..., Any], *rows: Any, **named: Any) -> Any:
        if named:
            found = [row for row in self.written if isinstance(row, model_measurements.WindowProofRow)]
            return found[-1] if found else None
        self.written += rows
        return len(self.written)

    def post(self, _event: Callable[..., Any], row: Any) -> None:
        self.written.append(row)


class OneWindow:
    """A router with one window."""

    def window(self, _role: str) -> Any:
        return type("Window", (), {"context": 4096})


def sink(record: MemoryRecord, meter: Meter, **known: frozenset[int]) -> RecordSink:
    return RecordSink(cast("Record", record), meter, cast("ModelRouter", OneWindow()), **known)


def test_a_call_is_written_and_counted() -> None:
    record, meter = MemoryRecord(), Meter()
    assert sink(record, meter).record(call(prompt_tokens=10, completion_tokens=3)) == 1
    assert (meter.read().calls, meter.read().prompt_tokens, meter.read().completion_tokens) == (1, 10, 3)


def test_a_failed_call_costs_no_tokens() -> None:
    record, meter = MemoryRecord(), Meter()
    sink(record, meter).record(call(error="refused", finish="error:ServerFailed", prompt_tokens=None))
    assert (len(record.written), meter.read().calls, meter.read().prompt_tokens) == (1, 1, 0)


def test_what_a_resumed_run_asked_before_is_not_written_again() -> None:
    record, meter = MemoryRecord(), Meter()
    made = sink(record, meter, asked=frozenset({7}), read=frozenset({7}))
    assert made.record(call(replayed_from=7)) == 7
    made.reading(7, AnswerReading.PARSED, "")
    assert record.written == []
    assert meter.read().calls == 0


def test_a_proof_is_found_again() -> None:
    proofs = RecordedProofs(cast("Record", MemoryRecord()))
    assert proofs.newest(SERVER) is None
    proofs.keep(SERVER, 5)
    assert proofs.newest(SERVER) == NOW
