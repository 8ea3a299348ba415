"""What the model client keeps in the record."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any, cast

from testing.runs.solving import Project, serving
from tests.db.raw.samples import NOW, call

from clean_room_agent.app.model_records import RecordedProofs, RecordSink
from clean_room_agent.artifacts.model_calls import AnswerReading, ProbedServer
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw import calls
from clean_room_agent.db.raw.calls import append_call
from clean_room_agent.db.raw.record import Record
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.token_estimator import TokenEstimator
from clean_room_agent.orchestrator.spending import Meter
from clean_room_agent.workspace import Workspace

SERVER = ProbedServer(
    provider="ollama", base_url="http://127.0.0.1:1", model="m", model_digest="", window=4096
)
MODELS = ("coder:3b", "thinker:4b")


class MemoryRecord:
    """Keeps what is written, in order."""

    def __init__(self) -> None:
        self.written: list[Any] = []

    def now(self) -> str:
        return NOW

    def write(self, event: Callable[..., Any], *rows: Any) -> Any:
        if event is calls.newest_proof:
            found = [row for row in self.written if isinstance(row, calls.WindowProofRow)]
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


def log_calls(till: Project, number: int, *, times: float) -> None:
    """As if each model had been asked so much, and the server had counted so many times the pieces."""
    with closing(get_connection("raw", repo_path=till.top)) as conn:
        for model in MODELS:
            calls.append_task_estimators(
                conn,
                (calls.TaskEstimatorRow(task_id="earlier", model=model, start_factor=1.3, timestamp=NOW),),
            )
            for _ in range(number):
                counted = round(times * 1000)
                append_call(
                    conn, call(task_id="earlier", model=model, prompt_tokens=counted, estimated_tokens=1300)
                )


def rows(till: Project, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(Workspace(repo=till.top).raw)) as conn:
        return [tuple(row) for row in conn.execute(query)]


def test_a_first_run_measures_by_the_start_factor(till: Project, solved: str) -> None:
    assert rows(till, "SELECT model, start_factor FROM task_gauges ORDER BY model") == [
        (model, 1.3) for model in MODELS
    ]
    for asked in till.recorded().calls:
        assert asked.cost.estimated_tokens == TokenEstimator().request(
            asked.request.system_prompt, asked.request.prompt
        )


def test_what_was_learned_measures_every_prompt_and_those_of_a_replay_as_the_run_did(till: Project) -> None:
    Workspace(repo=till.top).create()
    log_calls(till, 60, times=1.0)
    assert till.solve_scripted().code == 0
    run = till.recorded().run
    assert run is not None
    of_run = f"SELECT DISTINCT start_factor FROM task_gauges WHERE task_id = '{run.task_id}'"
    assert rows(till, of_run) == [(1.03,)]
    for asked in till.recorded().calls:
        assert asked.cost.estimated_tokens == TokenEstimator(factor=1.03).request(
            asked.request.system_prompt, asked.request.prompt
        )
    log_calls(till, 60, times=2.0)
    told = till.cra("replay", run.task_id, "--json")
    assert told.code == 0, told.err
    assert json.loads(told.out)["same"]
    newest = "SELECT start_factor FROM task_gauges ORDER BY id DESC LIMIT 1"
    assert rows(till, newest) == [(1.03,)]
    with serving(till) as server:
        till.configure(server.base_url)
        assert till.cra("plan", till.task).code == 0
    assert rows(till, newest) == [(2.06,)]
