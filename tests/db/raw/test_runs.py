import dataclasses
import sqlite3

import pytest
from tests.db.raw.samples import NOW, PASS, TASK, call, run, task_run

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.db.raw import calls, orchestrator_runs, runs, task_runs
from clean_room_agent.errors import UsageError

OTHER = "3f0c9999-7c7e-4a5c-9a53-0f2f0a6f0d11"


def test_runs_are_listed_newest_first_with_retrievals_that_stand_alone(conn: sqlite3.Connection) -> None:
    orchestrator_runs.append_orchestrator_run(conn, run(TASK, "2026-01-01"))
    task_runs.append_task_run(conn, task_run(f"{TASK}:meta_plan", "2026-01-05"))
    task_runs.append_task_run(conn, task_run(OTHER, "2026-01-02"))
    orchestrator_runs.append_orchestrator_run(conn, run("b" * 8, "2026-01-03"))
    assert [(row.task_id, row.command, row.status) for row in runs.list_runs(conn)] == [
        ("b" * 8, "solve", RunStatus.RUNNING),
        (OTHER, "implement", RunStatus.RUNNING),
        (TASK, "solve", RunStatus.RUNNING),
    ]
    assert [row.task_id for row in runs.list_runs(conn, limit=1)] == ["b" * 8]
    assert [row.task_id for row in orchestrator_runs.list_orchestrator_runs(conn)] == ["b" * 8, TASK]
    assert runs.list_runs(conn)[2] == dataclasses.replace(runs.list_runs(conn)[2], task_description="mend it")


def test_a_task_is_found_by_any_unique_beginning(conn: sqlite3.Connection) -> None:
    orchestrator_runs.append_orchestrator_run(conn, run(TASK))
    task_runs.append_task_run(conn, task_run(PASS))
    task_runs.append_task_run(conn, task_run(OTHER))
    calls.append_call(conn, call(task_id="77aa:meta_plan"))
    assert runs.find_task(conn, "3f0c8") == TASK
    assert runs.find_task(conn, OTHER) == OTHER
    assert runs.find_task(conn, "77") == "77aa"


def test_a_whole_id_wins_over_longer_ones(conn: sqlite3.Connection) -> None:
    for task_id in ("ab", "abc"):
        orchestrator_runs.append_orchestrator_run(conn, run(task_id))
    assert runs.find_task(conn, "ab") == "ab"


def test_an_ambiguous_beginning_names_the_candidates(conn: sqlite3.Connection) -> None:
    for task_id in (TASK, OTHER):
        orchestrator_runs.append_orchestrator_run(conn, run(task_id))
    with pytest.raises(UsageError) as caught:
        runs.find_task(conn, "3f0c")
    assert TASK in caught.value.message
    assert OTHER in caught.value.message
    assert caught.value.hint == "give more of the id"


@pytest.mark.parametrize("prefix", ["", "x", "3%", "3f0c8_", f"{TASK}:meta_plan"])
def test_a_beginning_that_no_task_has_is_an_error(conn: sqlite3.Connection, prefix: str) -> None:
    orchestrator_runs.append_orchestrator_run(conn, run(TASK))
    with pytest.raises(UsageError, match="no task begins") as caught:
        runs.find_task(conn, prefix)
    assert "cra runs" in caught.value.hint


def test_a_run_is_named_by_its_place_from_the_newest(conn: sqlite3.Connection) -> None:
    with pytest.raises(UsageError, match="there are no runs here"):
        runs.find_task(conn, "@")
    for name, timestamp in (
        ("old", NOW),
        ("new", NOW.replace("20", "21", 1)),
        ("newer", NOW.replace("20", "21", 1)),
    ):
        orchestrator_runs.append_orchestrator_run(conn, run(name, timestamp))
    assert [runs.find_task(conn, text) for text in ("@", "@~0", "@~1", "@~2")] == [
        "newer",
        "newer",
        "new",
        "old",
    ]
    with pytest.raises(UsageError, match="there are 3 runs here"):
        runs.find_task(conn, "@~3")
    for text in ("@~", "@~-1", "@1", "@~1x"):
        with pytest.raises(UsageError, match="no task begins with"):
            runs.find_task(conn, text)
