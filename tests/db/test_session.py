import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.artifacts.names import implement_pass
from clean_room_agent.db.connection import database_path
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import get_archive
from clean_room_agent.db.session import JsonValue, Session, archived_states, has_session
from clean_room_agent.errors import RecordError

TASK = "3f0c8a52-7c7e-4a5c-9a53-0f2f0a6f0d11"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def now() -> str:
    return "2026-01-02T03:04:05Z"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Session.open(tmp_path, TASK, clock=now) as opened:
        yield opened


@pytest.fixture(scope="module")
def any_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session.open(tmp_path_factory.mktemp("repo"), TASK, clock=now) as opened:
        yield opened


@given(key=st.text(st.characters(exclude_categories=["Cs"]), min_size=1), value=JSON)
def test_whatever_json_holds_comes_back(any_session: Session, key: str, value: JsonValue) -> None:
    any_session.set_state(key, value)
    assert any_session.get_state(key) == value


def test_a_key_has_its_last_value_until_it_is_deleted(session: Session) -> None:
    assert session.get_state("a") is None
    session.set_state("a", 1)
    session.set_state("a", {"b": [1, None, "ü"]})
    assert session.get_state("a") == {"b": [1, None, "ü"]}
    session.delete_state("a")
    session.delete_state("a")
    assert session.get_state("a") is None


def test_several_keys_are_set_by_one_statement_or_not_at_all(session: Session) -> None:
    session.set_states({})
    session.set_states({"a": 1, "b": [2]})
    session.set_states({"b": 3, "c": None})
    assert [session.get_state(key) for key in "abc"] == [1, 3, None]
    with pytest.raises(TypeError):
        session.set_states({"a": 9, "d": {1, 2}})  # type: ignore[dict-item]
    assert (session.get_state("a"), session.list_keys()) == (1, ("a", "b", "c"))


def test_the_keys_of_a_pass_stand_under_its_id(session: Session) -> None:
    first = session.for_pass(implement_pass(TASK, "p", "s"))
    second = session.for_pass(implement_pass(TASK, "p", "s", 2))
    first.set_state("final_context", "one")
    second.set_state("final_context", "two")
    session.set_state("final_context", "own")
    assert first.get_state("final_context") == "one"
    assert second.list_keys() == ("final_context",)
    assert session.for_pass(TASK).get_state("final_context") == "own"
    assert f"{TASK}:impl:p:s/final_context" in session.list_keys()


def test_threads_may_share_a_session(session: Session) -> None:
    def fill(name: str) -> None:
        for number in range(20):
            session.set_state(f"{name}:{number}", number)

    threads = [threading.Thread(target=fill, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(session.list_keys()) == 80


def test_an_archived_session_is_whole_in_the_record_and_its_files_are_gone(tmp_path: Path) -> None:
    with Record.open(tmp_path, clock=now) as record:
        session = Session.open(tmp_path, TASK, clock=now)
        for number in range(200):
            session.set_state(f"key:{number:03}", "x" * number)
        archive_id = session.archive(record)
        row = record.write(get_archive, TASK)
    assert row is not None
    assert (row.id, row.task_id, row.archived_at) == (archive_id, TASK, now())
    states = archived_states(row.session_blob)
    assert len(states) == 200
    assert states["key:150"] == "x" * 150
    assert not has_session(tmp_path, TASK)
    assert list(database_path("session", tmp_path, TASK).parent.iterdir()) == []


def test_a_session_that_cannot_be_recorded_is_kept(tmp_path: Path) -> None:
    record = Record.open(tmp_path, clock=now)
    record.close()
    session = Session.open(tmp_path, TASK, clock=now)
    session.set_state("a", 1)
    with pytest.raises(RecordError, match="closed"):
        session.archive(record)
    with Session.open(tmp_path, TASK, clock=now) as again:
        assert again.get_state("a") == 1
