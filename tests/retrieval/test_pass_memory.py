from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.retrieval.world import TASK, context_request

from clean_room_agent.artifacts.context import BudgetAccount, ContextPackage, TaskQuery
from clean_room_agent.db.session import Session
from clean_room_agent.errors import RecordError
from clean_room_agent.retrieval import pass_memory
from clean_room_agent.retrieval.stage import Candidate, Selection, StageContext

STEP = f"{TASK}:impl:p1:s1"
FILE = Candidate(path="a.py", file_id=1, tier=0, score=1.0, reasons=("named",))
SELECTION = Selection(
    path="a.py", symbol=None, start_line=1, end_line=2, detail="primary", tier=0, score=1.0, reason="named"
)
QUERY = TaskQuery(symbols=("f",), keywords=("cart",))


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
