"""The names that users and tools rely on: they may gain neighbours, never vanish or change."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clean_room_agent.db.connection import Role, connect_file

CONTRACT: dict[Role, dict[str, str]] = {
    "curated": {
        "repos": "id path remote_url indexed_at",
        "files": "id repo_id path language content_hash size_bytes mtime_ns inode parse_error",
        "symbols": "id file_id name kind start_line end_line signature parent_symbol_id qualified_name place",
        "docstrings": "id symbol_id file_id content format parsed_fields",
        "inline_comments": "id file_id symbol_id line content kind is_rationale",
        "dependencies": "id source_file_id target_file_id kind",
        "symbol_references": "id caller_symbol_id callee_symbol_id reference_kind confidence",
        "commits": "id repo_id hash author message timestamp files_changed insertions deletions",
        "file_commits": "file_id commit_id",
        "co_changes": "file_a_id file_b_id count last_commit_hash",
        "file_metadata": "file_id purpose module domain concepts public_api_surface complexity_notes",
        "adapter_metadata": "id stage_name base_model model_tag version active performance_notes deployed_at",
        "postings": "bucket terms counts files",
        "search_files": "file_id path_len symbols_len docstrings_len comments_len body_len words chunks",
        "commit_terms": "commit_id terms",
        "file_names": "file_id imports interface uses",
        "import_targets": "file_id targets",
        "lookups": "target_file_id source_file_id names",
        "reexports": "file_id name target_file_id symbol_id",
        "skipped_files": "path size_bytes mtime_ns inode reason",
        "renames": "commit_id old_path new_path",
        "lost_paths": "id path",
        "lost_commits": "path_id commit_id",
        "index_state": "key value",
    },
    "raw": {
        "index_runs": "id repo_path files_scanned files_changed duration_ms status timestamp",
        "enrichment_outputs": "id file_id model purpose module domain concepts public_api_surface complexity_notes "
        "raw_prompt raw_response promoted timestamp",
        "retrieval_llm_calls": "id task_id call_type stage_name model prompt response prompt_tokens completion_tokens "
        "latency_ms timestamp system_prompt request_body provider finish role item replayed_from",
        "call_readings": "id call_id reading fault timestamp",
        "retrieval_decisions": "id task_id stage file_id tier included reason timestamp path symbol score call_id "
        "confidence probability neutral calibrated",
        "task_runs": "id task_id repo_path mode execute_model context_window reserved_tokens stages plan_artifact "
        "success total_tokens total_latency_ms final_diff final_plan timestamp",
        "run_attempts": "id task_run_id attempt prompt_tokens completion_tokens latency_ms raw_response patch_applied "
        "timestamp outcome diff edit_report",
        "validation_results": "id attempt_id success test_output lint_output type_check_output failing_tests",
        "orchestrator_runs": "id task_id repo_path task_description total_parts total_steps parts_completed "
        "steps_completed status timestamp completed_at",
        "orchestrator_passes": "id orchestrator_run_id task_run_id pass_type part_id step_id sequence_order timestamp",
        "session_archives": "id task_id session_blob archived_at",
        "refinements": "id task_id request evidence added timestamp",
        "recovery_decisions": "id task_id state rule action timestamp",
        "plan_decisions": "id task_id question item yes reason call_id confidence probability neutral calibrated timestamp",
        "token_calibrations": "id model model_digest pairs newest_call_id margin weights words timestamp",
        "task_gauges": "id task_id model calibration_id start_factor timestamp",
        "answer_biases": "id base_url model model_digest prompt prompt_hash shares call_id timestamp",
        "window_proofs": "id provider base_url model model_digest window call_id timestamp",
        "adapter_evaluations": "id task_id timestamp",
        "adapter_deployments": "id adapter_id stage_name action tag replaced_tag reason timestamp",
        "training_plans": "id task_id target_stage base_model source data_criteria hyperparameters improvement_targets "
        "raw_plan timestamp",
        "training_datasets": "id training_plan_id stage_name base_model source dataset_path example_count "
        "positive_count negative_count format timestamp",
        "adapter_registry": "id dataset_id stage_name base_model model_tag training_loss eval_metrics deployed "
        "trained_at",
        "events": "id task_id kind detail timestamp",
        "time_spans": "id task_id kind detail began_at ended_at",
    },
    "session": {"kv": "key value updated_at"},
}
INDEXED: dict[Role, tuple[tuple[str, str], ...]] = {
    "curated": (
        ("files", "repo_id path"),
        ("symbols", "file_id"),
        ("symbols", "name"),
        ("dependencies", "source_file_id"),
        ("dependencies", "target_file_id"),
        ("symbol_references", "caller_symbol_id"),
        ("symbol_references", "callee_symbol_id"),
        ("commits", "repo_id hash"),
        ("file_commits", "file_id commit_id"),
        ("co_changes", "file_a_id file_b_id"),
        ("file_metadata", "domain"),
        ("file_metadata", "module"),
        ("adapter_metadata", "stage_name active"),
        ("lookups", "target_file_id source_file_id"),
        ("lost_paths", "path"),
        ("reexports", "file_id name"),
        ("reexports", "target_file_id"),
        ("reexports", "symbol_id"),
    ),
    "raw": (("task_runs", "task_id"), ("retrieval_llm_calls", "task_id call_type item attempt")),
    "session": (("kv", "key"),),
}
ROLES: tuple[Role, ...] = ("curated", "raw", "session")


@pytest.fixture(params=ROLES)
def role(request: pytest.FixtureRequest) -> Role:
    found: Role = request.param
    return found


@pytest.fixture
def conn(tmp_path: Path, role: Role) -> Iterator[sqlite3.Connection]:
    with closing(connect_file(role, tmp_path / "some.sqlite")) as opened:
        yield opened


def columns(conn: sqlite3.Connection, table: str) -> list[str]:
    return [row["name"] for row in conn.execute(f"PRAGMA table_info({table})")]


def indexes(conn: sqlite3.Connection, table: str) -> set[str]:
    names = [row["name"] for row in conn.execute(f"PRAGMA index_list({table})")]
    return {" ".join(row["name"] for row in conn.execute(f"PRAGMA index_info({name})")) for name in names}


def tables(conn: sqlite3.Connection) -> set[str]:
    return {row[0] for row in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_every_table_and_column_of_the_contract_is_there(conn: sqlite3.Connection, role: Role) -> None:
    for table, names in CONTRACT[role].items():
        missing = set(names.split()) - set(columns(conn, table))
        assert not missing, f"{table} lacks {missing}"


def test_every_table_stands_in_the_contract(conn: sqlite3.Connection, role: Role) -> None:
    assert tables(conn) == set(CONTRACT[role])


def test_the_indexes_of_the_contract_are_there(conn: sqlite3.Connection, role: Role) -> None:
    for table, names in INDEXED[role]:
        assert names in indexes(conn, table), f"{table} has no index on {names}"


def test_every_reference_is_indexed_so_that_cascades_and_joins_are_quick(conn: sqlite3.Connection) -> None:
    for table in sorted(tables(conn)):
        primary = [row["name"] for row in conn.execute(f"PRAGMA table_info({table})") if row["pk"] == 1]
        first = {names.split()[0] for names in indexes(conn, table)} | set(primary)
        # The judged and the accepted call are only ever looked up from the other side.
        for row in conn.execute(f"PRAGMA foreign_key_list({table})"):
            assert row["from"] in first or row["from"] in {"call_id", "repo_id"}, f"{table}.{row['from']}"


def test_deleting_a_file_takes_along_all_that_was_known_of_it(tmp_path: Path) -> None:
    with closing(connect_file("curated", tmp_path / "curated.sqlite")) as conn:
        conn.executescript(
            """
            INSERT INTO repos VALUES (1, '/r', NULL, 'now');
            INSERT INTO files (id, repo_id, path, language, content_hash, size_bytes) VALUES
                (1, 1, 'a.py', 'python', 'h', 1), (2, 1, 'b.py', 'python', 'h', 1);
            INSERT INTO symbols VALUES (1, 1, 'A', 'A', 'class', 1, 9, 'class A:', NULL, 0),
                (2, 1, 'f', 'A.f', 'method', 2, 3, 'def f(self):', 1, 1),
                (3, 2, 'g', 'g', 'function', 1, 2, 'def g():', NULL, 0);
            INSERT INTO docstrings VALUES (1, 2, 1, 'words', 'plain', NULL), (2, NULL, 1, 'words', 'plain', NULL);
            INSERT INTO inline_comments VALUES (1, 1, 2, 3, 'why', 'rationale', 1);
            INSERT INTO dependencies VALUES (1, 1, 2, 'import'), (2, 2, 1, 'import');
            INSERT INTO symbol_references VALUES (1, 3, 2, 'call', 1.0);
            INSERT INTO commits VALUES (1, 1, 'c', 'x', 'm', 'now', 2, NULL, NULL);
            INSERT INTO file_commits VALUES (1, 1), (2, 1);
            INSERT INTO co_changes VALUES (1, 2, 1, 'c');
            INSERT INTO file_metadata (file_id, purpose) VALUES (1, 'p');
            INSERT INTO file_names VALUES (1, '[]', '{}', '{}'), (2, '[]', '{}', '{}');
            INSERT INTO lookups VALUES (1, 2, '[]'), (2, 1, '[]');
            INSERT INTO reexports VALUES (1, 'g', 2, 3), (2, 'A', 1, 1);
            INSERT INTO search_files VALUES (1, 1, 0, 0, 0, 1, '', x''), (2, 1, 0, 0, 0, 1, '', x'');
            INSERT INTO commit_terms VALUES (1, '{}');
            INSERT INTO renames VALUES (1, x'41', x'42');
            DELETE FROM files WHERE id = 1;
            """
        )
        left = {table: conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables(conn)}
    of_other_file = {"repos", "files", "symbols", "file_names", "search_files"}
    # What the other file looked up in it tells whom to resolve again; its past waits for its return.
    of_past = {"lookups", "commits", "file_commits", "commit_terms", "renames", "lost_paths", "lost_commits"}
    assert {table: count for table, count in left.items() if count} == dict.fromkeys(
        of_other_file | of_past, 1
    )


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO co_changes VALUES (2, 1, 1, 'c')",
        "INSERT INTO co_changes VALUES (1, 1, 1, 'c')",
        "INSERT INTO files (repo_id, path, language, content_hash, size_bytes) VALUES (7, 'a', 'b', 'c', 1)",
        "INSERT INTO files (repo_id, path, language, content_hash, size_bytes) VALUES (1, 'a.py', 'b', 'c', 'much')",
        "INSERT INTO files (repo_id, path, language, content_hash, size_bytes) VALUES (1, 'a.py', 'b', 'c', 1)",
        "INSERT INTO symbols VALUES (1, 1, 'A', 'A', 'klass', 1, 9, 'class A:', NULL, 0)",
    ],
)
def test_what_cannot_be_true_of_a_repository_is_refused(tmp_path: Path, statement: str) -> None:
    with closing(connect_file("curated", tmp_path / "curated.sqlite")) as conn:
        conn.execute("INSERT INTO repos VALUES (1, '/r', NULL, 'now')")
        for number, path in ((1, "a.py"), (2, "b.py")):
            conn.execute(
                "INSERT INTO files (id, repo_id, path, language, content_hash, size_bytes) VALUES (?, 1, ?, 'x', 'h', 1)",
                (number, path),
            )
        with pytest.raises(sqlite3.IntegrityError):
            conn.execute(statement)
