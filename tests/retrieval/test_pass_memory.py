from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.retrieval.world import TASK, context_request

from clean_room_agent.artifacts.context import BudgetAccount, ContextPackage, Subject, TaskQuery
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.passes import DecisionRow, list_decisions
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.session import Session
from clean_room_agent.errors import RecordError
from clean_room_agent.retrieval import pass_memory
from clean_room_agent.retrieval.pass_memory import DecisionLog
from clean_room_agent.retrieval.stage import Candidate, Decision, Selection, StageContext, Verdict, Weight

PASS = "11111111-2222-4333-8444-555555555555:meta_plan"
DECISION = Decision(
    stage="scope",
    subject=Subject(path="a.py", symbol="f", file_id=7, tier=2, score=0.5),
    included=True,
    detail="primary",
    reason="judged change",
    verdict=Verdict(
        label="change",
        reason="judged change",
        confidence=0.75,
        weight=Weight(probability=0.75, neutral=0.5, calibrated=1.5),
    ),
)
Read = Callable[[], tuple[DecisionRow, ...]]
STEP = f"{TASK}:impl:p1:s1"
FILE = Candidate(path="a.py", file_id=1, tier=0, score=1.0, reasons=("named",))
SELECTION = Selection(
    path="a.py", symbol=None, start_line=1, end_line=2, detail="primary", tier=0, score=1.0, reason="named"
)
QUERY = TaskQuery(symbols=("f",), keywords=("cart",))


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    opened = Record.open(tmp_path, clock=lambda: "2026-01-01T00:00:00Z")
    yield opened
    opened.close()


@pytest.fixture
def rows(record: Record, tmp_path: Path) -> Iterator[Read]:
    conn = connect_file("raw", tmp_path / ".clean_room" / "raw.sqlite", read_only=True)
    yield lambda: list_decisions(conn, PASS)
    conn.close()


def test_a_decision_is_a_row_with_its_subject_and_its_verdict(record: Record, rows: Read) -> None:
    DecisionLog(record).write(PASS, [DECISION])
    (row,) = rows()
    assert (row.task_id, row.stage, row.timestamp) == (PASS, "scope", "2026-01-01T00:00:00Z")
    assert (
        row.subject.path,
        row.subject.symbol,
        row.subject.file_id,
        row.subject.tier,
        row.subject.score,
    ) == ("a.py", "f", 7, 2, 0.5)
    assert (row.included, row.detail, row.reason) == (True, "primary", "judged change")
    assert (
        row.judgment.call_id,
        row.judgment.confidence,
        row.judgment.probability,
        row.judgment.neutral,
        row.judgment.calibrated,
    ) == (
        None,
        0.75,
        0.75,
        0.5,
        1.5,
    )


def test_a_decision_of_the_program_has_no_verdict(record: Record, rows: Read) -> None:
    DecisionLog(record).write(PASS, [replace(DECISION, verdict=None)])
    (row,) = rows()
    assert (row.judgment.call_id, row.judgment.confidence, row.judgment.probability) == (None, None, None)


def test_what_was_posted_is_committed_before_what_is_written(record: Record, rows: Read) -> None:
    log = DecisionLog(record)
    log.post(PASS, [DECISION])
    log.write(PASS, [replace(DECISION, stage="assembly")])
    assert [row.stage for row in rows()] == ["scope", "assembly"]


def test_a_pass_done_again_writes_only_what_an_earlier_try_did_not(record: Record, rows: Read) -> None:
    DecisionLog(record).write(PASS, [DECISION])
    again = DecisionLog(record)
    again.post(PASS, [DECISION])
    again.write(PASS, [replace(DECISION, stage="assembly")])
    assert [row.stage for row in rows()] == ["scope", "assembly"]


def test_what_is_decided_twice_in_one_try_is_written_twice(record: Record, rows: Read) -> None:
    log = DecisionLog(record)
    log.write(PASS, [DECISION, DECISION])
    assert len(rows()) == 2
    DecisionLog(record).write(PASS, [DECISION, DECISION, DECISION])
    assert len(rows()) == 3


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Session.open(tmp_path, TASK, clock=lambda: "2026-01-01T00:00:00Z") as opened:
        yield opened


def remember(session: Session, pass_id: str, query: TaskQuery = QUERY) -> ContextPackage:
    package = ContextPackage(
        pass_id=pass_id,
        task="Fix it",
        items=(),
        budget=BudgetAccount(context_window=10, reserved_tokens=2, used_tokens=0),
    )
    states = session.for_pass(pass_id)
    context = StageContext(
        request=context_request(),
        available_tokens=8,
        candidates=(FILE,),
        files=(FILE,),
        selections=(SELECTION,),
    )
    pass_memory.remember_query(states, query)
    pass_memory.remember_outputs(states, context)
    pass_memory.remember_package(states, package)
    return package


def test_what_was_remembered_is_recalled(session: Session) -> None:
    package = remember(session, STEP)
    found = pass_memory.recall(session, STEP)
    assert (found.pass_id, found.query, found.package) == (STEP, QUERY, package)
    assert found.outputs == pass_memory.StageOutputs(files=(FILE,), selections=(SELECTION,))


def test_an_attempt_goes_on_from_the_newest_before_it(session: Session) -> None:
    remember(session, STEP)
    remember(session, f"{STEP}:retry_1")
    assert pass_memory.recall(session, f"{STEP}:retry_3").pass_id == f"{STEP}:retry_1"


def test_without_a_package_there_is_nothing_to_go_on_from(session: Session) -> None:
    pass_memory.remember_query(session.for_pass(STEP), QUERY)
    with pytest.raises(RecordError, match="holds no context for pass"):
        pass_memory.recall(session, STEP)


def test_a_damaged_package_is_an_error_that_names_the_pass(session: Session) -> None:
    remember(session, STEP)
    session.for_pass(STEP).set_state("final_context", {"items": 3})
    with pytest.raises(RecordError, match=f"pass {STEP} cannot be read"):
        pass_memory.recall(session, STEP)


def test_a_query_with_keys_of_an_earlier_version_is_read(session: Session) -> None:
    remember(session, STEP)
    states = session.for_pass(STEP)
    states.set_state("task_query", {"task": "Fix it", "focus": "", "symbols": ["f"], "keywords": ["cart"]})
    assert pass_memory.recall(session, STEP).query == QUERY


def test_changes_of_all_planning_passes_of_the_task_come_together(session: Session) -> None:
    pass_memory.remember_changes(session.for_pass(f"{TASK}:meta_plan"), {("a.py", "f")})
    pass_memory.remember_changes(session.for_pass(f"{TASK}:part_plan:p1"), {("b.py", "g"), ("a.py", "f")})
    assert pass_memory.recall_changes(session, TASK) == {("a.py", "f"), ("b.py", "g")}
