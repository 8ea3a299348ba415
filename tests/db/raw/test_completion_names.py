import sqlite3

from tests.db.raw.samples import run

from clean_room_agent.db.raw import runs
from clean_room_agent.db.raw.completion_names import find_runs


def test_runs_are_named_with_what_they_are_the_newest_first(conn: sqlite3.Connection) -> None:
    for name, when in (("aaaa-1", "2026-01-01"), ("aaaa-2", "2026-01-02"), ("bbbb-1", "2026-01-03")):
        runs.append_orchestrator_run(conn, run(name, when))
    assert find_runs(conn, "aaaa", limit=9) == (
        ("aaaa-2", "solve, running: mend it"),
        ("aaaa-1", "solve, running: mend it"),
    )
    assert [name for name, _ in completion_names.name_runs(conn, "", limit=1)] == ["bbbb-1"]


def test_the_files_that_a_model_was_shown_come_first(conn: sqlite3.Connection) -> None:
    calls.append_call(conn, call())
    rows = [("z.py", True), ("a.py", False), ("b.py", False), ("b.py", True), ("", False)]
    for path, included in rows:
        passes.append_decisions(conn, (sample(passes.DecisionRow, path=path, included=included),))
    assert completion_names.name_paths(conn, TASK) == (
        ("b.py", "shown"),
        ("z.py", "shown"),
        ("a.py", "left out"),
    )


def test_places_are_passes_parts_and_steps(conn: sqlite3.Connection) -> None:
    run_id = runs.append_orchestrator_run(conn, run())
    made = (
        (f"{TASK}:meta_plan", PassType.META_PLAN, "", ""),
        (f"{TASK}:impl:p:s", PassType.IMPLEMENT, "p", "s"),
        (f"{TASK}:impl:p:s:retry_1", PassType.IMPLEMENT, "p", "s"),
    )
    for order, (pass_id, kind, part, step) in enumerate(made):
        row_id = passes.append_task_run(conn, task_run(pass_id))
        row = passes.PassRow(
            orchestrator_run_id=run_id, task_run_id=row_id, pass_type=kind, part_id=part, step_id=step,
            sequence_order=order, timestamp=NOW,
        )  # fmt: skip
        passes.append_pass(conn, row)
    assert completion_names.name_places(conn, TASK) == (
        ("meta_plan", "meta plan"),
        ("p", "a part"),
        ("p/s", "a step"),
    )


def test_adapters_are_named_the_newest_first(conn: sqlite3.Connection) -> None:
    training.TRAINING_PLANS.insert(conn, sample(training.TrainingPlanRow))
    training.TRAINING_DATASETS.insert(conn, sample(training.DatasetRow))
    for tag in ("m:1", "m:2"):
        training.ADAPTER_REGISTRY.insert(conn, sample(training.AdapterRow, model_tag=tag))
    training.ADAPTER_REGISTRY.update(conn, 1, deployed=True)
    assert completion_names.name_adapters(conn) == (
        ("m:2", "scope_judgment"),
        ("m:1", "scope_judgment, deployed"),
    )
