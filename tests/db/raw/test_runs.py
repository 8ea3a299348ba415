"""The spans of a task, oldest first."""

import sqlite3

import pytest
from msgspec import structs
from testing.runs.decision_rows import decision_row
from tests.db.raw.samples import NOW, PASS, TASK, attempt, call, run, sample, task_run, validation

from clean_room_agent.artifacts.outcomes import PassType, RunStatus
from clean_room_agent.db.raw import calls, passes, runs
from clean_room_agent.errors import UsageError

OTHER = "3f0c9999-7c7e-4a5c-9a53-0f2f0a6f0d11"
TRACE = """
SELECT c.prompt, d.reason, v.success
FROM orchestrator_runs AS r
JOIN orchestrator_passes AS p ON p.orchestrator_run_id = r.id
JOIN task_runs AS t ON t.id = p.task_run_id
JOIN run_attempts AS a ON a.task_run_id = t.id
JOIN validation_results AS v ON v.attempt_id = a.id
JOIN retrieval_llm_calls AS c ON c.id = a.call_id AND c.task_id = t.task_id
JOIN retrieval_decisions AS d ON d.task_id = t.task_id
WHERE r.task_id = ?
"""


def test_a_runs_progress_and_outcome_change_and_its_passes_keep_their_order(conn: sqlite3.Connection) -> None:
    run_id = runs.append_orchestrator_run(conn, run())
    runs.set_snapshot(conn, run_id, commit="c" * 40, snapshot='{"dirty": []}')
    runs.set_progress(conn, run_id, total_parts=1, total_steps=2, parts_completed=0, steps_completed=1)
    outcome = runs.RunOutcome(status=RunStatus.PARTIAL, completed_at=NOW, reason="budget", branch="cra/x")
    runs.set_outcome(conn, run_id, outcome)
    row = runs.get_orchestrator_run(conn, TASK)
    assert row is not None
    assert (row.status, row.steps_completed, row.branch, row.snapshot_commit) == (
        RunStatus.PARTIAL,
        1,
        "cra/x",
        "c" * 40,
    )
    ids = [passes.append_task_run(conn, task_run(f"{TASK}:impl:p:s{number}")) for number in range(2)]
    for order, task_run_id in ((1, ids[1]), (0, ids[0]), (5, ids[0])):
        passes.append_pass(
            conn,
            passes.PassRow(
                orchestrator_run_id=run_id,
                task_run_id=task_run_id,
                pass_type=PassType.IMPLEMENT,
                sequence_order=order,
                timestamp=NOW,
            ),
        )
    assert [row.task_run_id for row in passes.list_passes(conn, run_id)] == ids


def test_a_session_comes_back_byte_for_byte(conn: sqlite3.Connection) -> None:
    runs.append_archive(conn, sample(runs.ArchiveRow))
    found = runs.get_archive(conn, TASK)
    assert found is not None
    assert found.session_blob == b"\x00\xff"
    assert runs.get_archive(conn, "another") is None


def test_runs_are_listed_newest_first_with_retrievals_that_stand_alone(conn: sqlite3.Connection) -> None:
    runs.append_orchestrator_run(conn, run(TASK, "2026-01-01"))
    passes.append_task_run(conn, task_run(f"{TASK}:meta_plan", "2026-01-05"))
    passes.append_task_run(conn, task_run(OTHER, "2026-01-02"))
    runs.append_orchestrator_run(conn, run("b" * 8, "2026-01-03"))
    assert [(row.task_id, row.command, row.status) for row in runs.list_overviews(conn, limit=9)] == [
        ("b" * 8, "solve", RunStatus.RUNNING),
        (OTHER, "implement", RunStatus.RUNNING),
        (TASK, "solve", RunStatus.RUNNING),
    ]
    assert [row.task_id for row in runs.list_overviews(conn, limit=1)] == ["b" * 8]
    assert runs.list_overviews(conn, limit=9)[2].task_description == "mend it"


def test_a_task_is_found_by_any_unique_beginning(conn: sqlite3.Connection) -> None:
    runs.append_orchestrator_run(conn, run(TASK))
    passes.append_task_run(conn, task_run(PASS))
    passes.append_task_run(conn, task_run(OTHER))
    calls.append_call(conn, call(task_id="77aa:meta_plan"))
    assert runs.find_task(conn, "3f0c8") == TASK
    assert runs.find_task(conn, OTHER) == OTHER
    assert runs.find_task(conn, "77") == "77aa"


@pytest.mark.parametrize("prefix", ["", "x", "3%", "3f0c8_", f"{TASK}:meta_plan"])
def test_a_beginning_that_no_task_has_is_an_error(conn: sqlite3.Connection, prefix: str) -> None:
    runs.append_orchestrator_run(conn, run(TASK))
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
        runs.append_orchestrator_run(conn, run(name, timestamp))
    replay = run("replay", NOW.replace("20", "22", 1))
    runs.append_orchestrator_run(conn, structs.replace(replay, command="replay"))
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


def decision(task_id: str, path: str) -> passes.DecisionRow:
    return decision_row(
        task_id=task_id,
        stage="scope",
        file_id=1,
        tier=1,
        included=True,
        reason="named",
        timestamp=NOW,
        path=path,
    )


def test_an_accepted_change_is_traced_to_its_prompt_and_its_decision_by_sql_alone(
    conn: sqlite3.Connection,
) -> None:
    run_id = runs.append_orchestrator_run(conn, run())
    task_run_id = passes.append_task_run(conn, task_run())
    row = passes.PassRow(
        orchestrator_run_id=run_id,
        task_run_id=task_run_id,
        pass_type=PassType.IMPLEMENT,
        sequence_order=0,
        timestamp=NOW,
    )
    passes.append_pass(conn, row)
    passes.append_decisions(conn, (decision(PASS, "a.py"),))
    call_id = calls.append_call(conn, call(prompt="the prompt"))
    attempt_id = passes.append_attempt(conn, attempt(task_run_id, 1, call_id=call_id))
    passes.append_validation(conn, validation(PASS, attempt_id))
    assert [tuple(row) for row in conn.execute(TRACE, (TASK,))] == [("the prompt", "named", 1)]
