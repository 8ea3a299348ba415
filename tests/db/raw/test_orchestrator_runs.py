import sqlite3

from tests.db.raw.samples import NOW, TASK, run, task_run

from clean_room_agent.artifacts.outcomes import PassType, RunStatus
from clean_room_agent.db.raw import orchestrator_runs, task_runs


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
