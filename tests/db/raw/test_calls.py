import sqlite3

from tests.db.raw.samples import NOW, PASS, TASK, call

from clean_room_agent.artifacts.model_calls import AnswerReading
from clean_room_agent.db.raw import calls

OTHER = "3f0c9999-7c7e-4a5c-9a53-0f2f0a6f0d11"


def test_the_calls_of_a_task_are_its_own_and_those_of_its_passes(conn: sqlite3.Connection) -> None:
    named = (TASK, f"{TASK}:meta_plan", PASS, f"{PASS}:retry_1", f"{TASK}0", OTHER, TASK[:-1], f"{PASS}_2")
    for number, task_id in enumerate(named):
        calls.append_call(conn, call(task_id=task_id, attempt=number))
    assert [row.site.attempt for row in calls.list_calls(conn, TASK)] == [0, 1, 2, 3, 7]
    assert [row.site.attempt for row in calls.list_calls(conn, PASS)] == [2, 3]
    assert calls.list_calls(conn, "%") == ()
    found = calls.get_call(conn, 3)
    assert found is not None
    assert found.site.pass_id == PASS
    assert calls.get_call(conn, 99) is None


def test_readings_are_those_of_the_tasks_calls(conn: sqlite3.Connection) -> None:
    for task_id in (PASS, OTHER):
        call_id = calls.append_call(conn, call(task_id=task_id))
        calls.append_reading(
            conn, calls.ReadingRow(call_id=call_id, reading=AnswerReading.PARSED, timestamp=NOW)
        )
    assert [row.call_id for row in calls.list_readings(conn, TASK)] == [1]
