import contextlib
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from testing.patience import PATIENCE
from testing.record_faults import schema_faults
from tests.db.raw.samples import NOW, PASS, SAMPLES, TASK, call, run, task_run

from clean_room_agent import proc
from clean_room_agent.db.connection import connect_file, get_connection, read_record
from clean_room_agent.db.raw import passes
from clean_room_agent.db.raw.calls import append_call
from clean_room_agent.db.raw.passes import append_task_run
from clean_room_agent.db.raw.pruning import (
    MEASUREMENTS,
    ROWS,
    compact_record,
    delete_tasks,
    file_bytes,
    run_bytes,
)
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import append_orchestrator_run
from clean_room_agent.proc import inherited_environment
from clean_room_agent.workspace import Workspace

OTHER = "9e9e9e9e-7c7e-4a5c-9a53-0f2f0a6f0d11"
KILLED = """
import os, signal, sys
from pathlib import Path
from clean_room_agent.db.connection import connect_file, read_record
from clean_room_agent.db.raw import pruning
conn = connect_file("raw", Path(sys.argv[1]))
conn.set_progress_handler(lambda: None, 0)
conn.execute("BEGIN IMMEDIATE")
conn.execute("PRAGMA cache_size = 1")
pruning.delete_tasks(conn, [sys.argv[2]])
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A record with a row of every table, and another run with a call of its own."""
    made = Workspace(repo=tmp_path)
    with closing(get_connection("raw", repo_path=tmp_path)) as conn:
        append_orchestrator_run(conn, run(OTHER))
        append_task_run(conn, task_run(f"{OTHER}:meta_plan"))
        append_call(conn, call(task_id=f"{OTHER}:meta_plan", prompt="x" * 200_000))
        for table, row in SAMPLES:
            shifted: dict[str, Any] = {
                name: value + 1
                for name in ("call_id", "newest_call_id", "task_run_id", "orchestrator_run_id")
                if (value := getattr(row, name, None)) is not None
            }
            if (judgment := getattr(row, "judgment", None)) is not None:
                shifted["judgment"] = replace(judgment, call_id=judgment.call_id + 1)
            if table is passes.PLAN_DECISIONS:
                shifted["task_id"] = PASS
            table.insert(conn, replace(row, **shifted) if shifted else row)
    return made


def rows(workspace: Workspace, task_id: str) -> dict[str, int]:
    bounds = (task_id, f"{task_id}:", f"{task_id};")
    with read_record(workspace.repo) as conn:
        return {
            table: conn.execute(f"SELECT count(*) FROM {table} WHERE {condition}", bounds).fetchone()[0]
            for table, condition in ROWS.items()
        }


def prune(workspace: Workspace, *task_ids: str) -> None:
    with Record.open(workspace.repo, clock=lambda: NOW) as record:
        record.write(delete_tasks, task_ids)


def test_nothing_of_a_pruned_run_is_left_and_all_of_the_other_is(workspace: Workspace) -> None:
    before, other = rows(workspace, TASK), rows(workspace, OTHER)
    assert min(before.values()) > 0, "the samples have a row of every table that a run owns"
    prune(workspace, TASK)
    assert not any(rows(workspace, TASK).values())
    assert rows(workspace, OTHER) == other
    with closing(get_connection("raw", repo_path=workspace.repo)) as conn:
        assert schema_faults(conn, "raw") == ()
        assert conn.execute("PRAGMA foreign_key_check").fetchone() is None
        with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
            conn.execute("DELETE FROM retrieval_llm_calls")


OLD_FIT = """
INSERT INTO token_calibrations (model, model_digest, pairs, newest_call_id, margin, weights, words, timestamp)
SELECT 'coder:3b', '', 50, min(id), 1.1, '[]', '[]', '' FROM retrieval_llm_calls
"""
"""A row of a build before, which fitted estimators to calls."""


def test_what_was_learned_from_a_pruned_run_stays_without_its_prompts(workspace: Workspace) -> None:
    with closing(get_connection("raw", repo_path=workspace.repo)) as conn:
        conn.execute(OLD_FIT)
    prune(workspace, TASK)
    with read_record(workspace.repo) as conn:
        learned = "SELECT count(*) FROM answer_biases AS b JOIN retrieval_llm_calls AS c ON c.id = b.call_id"
        assert conn.execute(f"{learned} WHERE c.task_id = ?", (MEASUREMENTS,)).fetchone()[0] == 1
        kept = "SELECT c.task_id FROM token_calibrations AS t JOIN retrieval_llm_calls AS c ON c.id = t.newest_call_id"
        assert [row[0] for row in conn.execute(kept)] == [f"{OTHER}:meta_plan"]


def test_every_table_that_names_a_task_is_known_to_pruning(workspace: Workspace) -> None:
    with read_record(workspace.repo) as conn:
        tables = [row[0] for row in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        own = {
            table
            for table in tables
            if any(row[1] == "task_id" for row in conn.execute(f"PRAGMA table_info({table})"))
        }
    # Training is no run: its plans and evaluations outlive the runs that they were made from.
    assert own - {"training_plans", "adapter_evaluations"} <= ROWS.keys()


def test_killed_in_the_middle_nothing_is_gone(workspace: Workspace) -> None:
    before = rows(workspace, TASK)
    done = proc.run(
        (sys.executable, "-c", KILLED, str(workspace.raw), TASK),
        cwd=workspace.repo,
        env=inherited_environment(without="GIT_"),
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode in {-signal.SIGKILL, 128 + signal.SIGKILL}, done.stderr
    assert rows(workspace, TASK) == before
    with closing(get_connection("raw", repo_path=workspace.repo)) as conn:
        assert schema_faults(conn, "raw") == ()


def test_the_record_gets_smaller_once_nobody_else_has_it_open(workspace: Workspace) -> None:
    prune(workspace, OTHER)
    before = file_bytes(workspace.raw)
    with contextlib.closing(connect_file("raw", workspace.raw, read_only=True)) as reader:
        reader.execute("SELECT 1 FROM events").fetchone()
        assert not compact_record(workspace)
        assert file_bytes(workspace.raw) >= before
    assert compact_record(workspace)
    assert file_bytes(workspace.raw) < before - 150_000
    with read_record(workspace.repo) as conn:
        assert schema_faults(conn, "raw") == ()
        assert conn.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert workspace.raw.stat().st_mode & 0o777 == 0o600


def test_a_run_takes_the_bytes_of_its_texts(workspace: Workspace) -> None:
    with read_record(workspace.repo) as conn:
        assert 200_000 < run_bytes(conn, workspace, OTHER) < 202_000
        assert run_bytes(conn, workspace, "nobody") == 0


def test_a_transaction_that_is_rolled_back_leaves_rows_and_triggers(workspace: Workspace) -> None:
    with closing(get_connection("raw", repo_path=workspace.repo)) as conn:
        conn.execute("BEGIN IMMEDIATE")
        delete_tasks(conn, [TASK])
        conn.execute("ROLLBACK")
        assert schema_faults(conn, "raw") == ()
    assert rows(workspace, TASK)["retrieval_llm_calls"] == 1
