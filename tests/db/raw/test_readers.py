import dataclasses
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.db.raw.samples import NOW, PASS, TASK, call, run, task_run

from clean_room_agent.artifacts.model_calls import AnswerReading
from clean_room_agent.artifacts.outcomes import AttemptOutcome, PassType, RunStatus
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw import analysis, attempts, calls, decisions, orchestrator_runs, runs, task_runs
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


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect_file("raw", tmp_path / "raw.sqlite")) as opened:
        yield opened


def attempt(task_run_id: int, number: int, call_id: int | None = None) -> attempts.AttemptRow:
    return attempts.AttemptRow(
        task_run_id=task_run_id,
        attempt=number,
        prompt_tokens=None,
        completion_tokens=None,
        latency_ms=1,
        raw_response="",
        patch_applied=True,
        timestamp=NOW,
        outcome=AttemptOutcome.APPLIED_AND_PASSED,
        call_id=call_id,
    )


def validation(task_id: str, attempt_id: int | None) -> attempts.ValidationRow:
    kind: attempts.ValidationKind = "attempt" if attempt_id else "baseline"
    return attempts.ValidationRow(
        attempt_id=attempt_id, success=True, test_output="", task_id=task_id, kind=kind, timestamp=NOW
    )


def decision(task_id: str, path: str) -> decisions.DecisionRow:
    return decisions.DecisionRow(
        task_id=task_id,
        stage="scope",
        file_id=1,
        tier=1,
        included=True,
        reason="named",
        timestamp=NOW,
        path=path,
    )


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


def test_decisions_can_be_asked_for_by_file(conn: sqlite3.Connection) -> None:
    rows = (decision(PASS, "a.py"), decision(PASS, "b.py"), decision(OTHER, "a.py"))
    assert decisions.append_decisions(conn, rows) == (1, 2, 3)
    assert [row.path for row in decisions.list_decisions(conn, TASK)] == ["a.py", "b.py"]


def test_a_pass_is_recorded_once_and_its_outcome_when_it_ends(conn: sqlite3.Connection) -> None:
    first = task_runs.append_task_run(conn, task_run())
    assert task_runs.append_task_run(conn, task_run(timestamp="later")) == first
    outcome = task_runs.TaskRunOutcome(
        success=True, total_tokens=5, total_latency_ms=6, completed_at=NOW, final_diff="+x"
    )
    task_runs.finish_task_run(conn, first, outcome)
    row = task_runs.get_task_run(conn, PASS)
    assert row is not None
    assert (row.timestamp, row.success, row.total_tokens, row.final_diff) == (NOW, True, 5, "+x")
    assert task_runs.get_task_run(conn, TASK) is None


def test_a_runs_progress_and_outcome_change_and_its_passes_keep_their_order(conn: sqlite3.Connection) -> None:
    run_id = orchestrator_runs.append_orchestrator_run(conn, run())
    orchestrator_runs.set_snapshot(conn, run_id, commit="c" * 40, snapshot='{"dirty": []}')
    progress = orchestrator_runs.RunProgress(
        total_parts=1, total_steps=2, parts_completed=0, steps_completed=1
    )
    orchestrator_runs.set_progress(conn, run_id, progress)
    outcome = orchestrator_runs.RunOutcome(
        status=RunStatus.PARTIAL, completed_at=NOW, reason="budget", branch="cra/x"
    )
    orchestrator_runs.set_outcome(conn, run_id, outcome)
    row = orchestrator_runs.get_orchestrator_run(conn, TASK)
    assert row is not None
    assert (row.status, row.steps_completed, row.branch, row.snapshot_commit) == (
        RunStatus.PARTIAL,
        1,
        "cra/x",
        "c" * 40,
    )
    ids = [task_runs.append_task_run(conn, task_run(f"{TASK}:impl:p:s{number}")) for number in range(2)]
    for order, task_run_id in ((1, ids[1]), (0, ids[0]), (5, ids[0])):
        orchestrator_runs.append_pass(
            conn,
            orchestrator_runs.PassRow(
                orchestrator_run_id=run_id,
                task_run_id=task_run_id,
                pass_type=PassType.IMPLEMENT,
                sequence_order=order,
                timestamp=NOW,
            ),
        )
    assert [row.task_run_id for row in orchestrator_runs.list_passes(conn, run_id)] == ids


def test_attempts_stand_with_their_validations_and_the_baseline_without_one(conn: sqlite3.Connection) -> None:
    mine = task_runs.append_task_run(conn, task_run())
    other = task_runs.append_task_run(conn, task_run(f"{OTHER}:impl:p:s"))
    attempts.append_validation(conn, validation(TASK, None))
    for task_run_id, pass_id in ((mine, PASS), (other, f"{OTHER}:impl:p:s")):
        attempt_id = attempts.append_attempt(conn, attempt(task_run_id, 1))
        attempts.append_validation(conn, validation(pass_id, attempt_id))
    assert [row.task_run_id for row in attempts.list_attempts(conn, TASK)] == [mine]
    assert [row.attempt_id for row in attempts.list_validations(conn, TASK)] == [None, 1]


def test_an_attempt_and_the_test_run_that_judged_it_stand_there_both_or_neither(
    conn: sqlite3.Connection,
) -> None:
    row_id = task_runs.append_task_run(conn, task_run(PASS))
    attempt_id = attempts.append_judged(conn, attempt(row_id, 1), validation(PASS, None))
    assert [row.attempt_id for row in attempts.list_validations(conn, PASS)] == [attempt_id]
    attempts.append_judged(conn, attempt(row_id, 2), None)
    assert len(attempts.list_attempts(conn, PASS)) == 2
    assert len(attempts.list_validations(conn, PASS)) == 1


def test_an_accepted_change_is_traced_to_its_prompt_and_its_decision_by_sql_alone(
    conn: sqlite3.Connection,
) -> None:
    run_id = orchestrator_runs.append_orchestrator_run(conn, run())
    task_run_id = task_runs.append_task_run(conn, task_run())
    row = orchestrator_runs.PassRow(
        orchestrator_run_id=run_id,
        task_run_id=task_run_id,
        pass_type=PassType.IMPLEMENT,
        sequence_order=0,
        timestamp=NOW,
    )
    orchestrator_runs.append_pass(conn, row)
    decisions.append_decisions(conn, (decision(PASS, "a.py"),))
    call_id = calls.append_call(conn, call(prompt="the prompt"))
    attempt_id = attempts.append_attempt(conn, attempt(task_run_id, 1, call_id))
    attempts.append_validation(conn, validation(PASS, attempt_id))
    assert [tuple(row) for row in conn.execute(TRACE, (TASK,))] == [("the prompt", "named", 1)]


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


def test_sums_of_a_spoiled_record_have_no_largest_number(conn: sqlite3.Connection) -> None:
    for _ in range(3):
        calls.append_call(conn, call(prompt_tokens=2**62, completion_tokens=2**62, latency_ms=2**62))
    total = calls.total_of_pass(conn, PASS)
    assert (total.calls, total.prompt_tokens, total.latency_ms) == (3, 3 * 2**62, 3 * 2**62)
    (sums,) = analysis.list_call_sums(conn)
    assert (sums.calls, sums.completion_tokens) == (3, 3 * 2**62)
