import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.db.raw.samples import SAMPLES, call

from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.rows import Table

UPDATABLE = {
    "task_runs": {
        "success",
        "total_tokens",
        "total_latency_ms",
        "final_diff",
        "final_plan",
        "detail",
        "completed_at",
    },
    "orchestrator_runs": {
        "total_parts",
        "total_steps",
        "parts_completed",
        "steps_completed",
        "status",
        "completed_at",
        "snapshot_commit",
        "snapshot",
        "branch",
        "result_commit",
        "reason",
    },
    "enrichment_outputs": {"promoted"},
    "adapter_registry": {"deployed"},
}
every_table = pytest.mark.parametrize("table", [table for table, _ in SAMPLES], ids=lambda table: table.name)


@pytest.fixture(scope="session")
def samples(blank: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record with each sample."""
    path = Path(shutil.copy(blank, tmp_path_factory.mktemp("samples") / "raw.sqlite"))
    with closing(connect_file("raw", path)) as opened:
        for table, row in SAMPLES:
            assert table.insert(opened, row) == 1
    return path


@pytest.fixture
def filled(samples: Path, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect_file("raw", Path(shutil.copy(samples, tmp_path / "samples.sqlite")))) as opened:
        yield opened


def test_there_is_a_sample_of_every_table(conn: sqlite3.Connection) -> None:
    names = {row[0] for row in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    # Only builds before wrote fits of token estimators.
    assert names - {"token_calibrations"} == {table.name for table, _ in SAMPLES}


@every_table
def test_a_row_has_a_field_for_every_column(conn: sqlite3.Connection, table: Table[Any]) -> None:
    names = {row["name"] for row in conn.execute(f"PRAGMA table_info({table.name})")}
    assert set(table.columns) == names


def test_every_row_comes_back_as_it_went_in(filled: sqlite3.Connection) -> None:
    for table, row in SAMPLES:
        assert table.select(filled, "ORDER BY id") == (structs.replace(row, id=1),)


@every_table
def test_no_row_is_deleted(filled: sqlite3.Connection, table: Table[Any]) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
        filled.execute(f"DELETE FROM {table.name}")
    assert len(table.select(filled, "")) == 1


@every_table
def test_no_row_is_replaced_by_any_program(filled: sqlite3.Connection, table: Table[Any]) -> None:
    before = table.select(filled, "")
    for of_another_program in (False, True):
        if of_another_program:
            filled.execute("PRAGMA recursive_triggers = OFF")
        for verb in ("REPLACE INTO", "INSERT OR REPLACE INTO", "INSERT OR ABORT INTO"):
            with pytest.raises(sqlite3.IntegrityError, match=r"never (deleted|replaced)"):
                filled.execute(f"{verb} {table.name} SELECT * FROM {table.name}")
            assert table.select(filled, "") == before, verb


@pytest.mark.parametrize(
    ("name", "unique"),
    [
        ("task_runs", ("task_id",)),
        ("orchestrator_runs", ("task_id",)),
        ("orchestrator_passes", ("orchestrator_run_id", "task_run_id")),
    ],
)
def test_a_row_is_not_replaced_by_way_of_its_other_key(
    filled: sqlite3.Connection, name: str, unique: tuple[str, ...]
) -> None:
    filled.execute("PRAGMA recursive_triggers = OFF")
    columns = [row["name"] for row in filled.execute(f"PRAGMA table_info({name})") if row["name"] != "id"]
    listed = ", ".join(columns)
    with pytest.raises(sqlite3.IntegrityError, match="never replaced"):
        filled.execute(f"REPLACE INTO {name} ({listed}) SELECT {listed} FROM {name}")
    assert set(unique) < set(columns)
    assert filled.execute(f"SELECT id FROM {name}").fetchall()[0][0] == 1


@every_table
def test_an_upsert_changes_nothing(filled: sqlite3.Connection, table: Table[Any]) -> None:
    before = table.select(filled, "")
    for column in table.columns:
        statement = (
            f"INSERT INTO {table.name} SELECT * FROM {table.name} WHERE true "
            f"ON CONFLICT (id) DO UPDATE SET {column} = excluded.{column}"
        )
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            filled.execute(statement)
    assert table.select(filled, "") == before


@every_table
def test_only_the_listed_columns_change(filled: sqlite3.Connection, table: Table[Any]) -> None:
    for column in table.columns:
        statement = f"UPDATE {table.name} SET {column} = {column}"
        if column in UPDATABLE.get(table.name, set()):
            filled.execute(statement)
        else:
            with pytest.raises(sqlite3.IntegrityError, match="never changed"):
                filled.execute(statement)


def test_a_snapshot_is_written_once(filled: sqlite3.Connection) -> None:
    filled.execute("UPDATE orchestrator_runs SET snapshot_commit = 'a', snapshot = '{}'")
    filled.execute("UPDATE orchestrator_runs SET snapshot_commit = 'a', snapshot = '{}'")
    for column in ("snapshot_commit", "snapshot"):
        with pytest.raises(sqlite3.IntegrityError, match="snapshot is never changed"):
            filled.execute(f"UPDATE orchestrator_runs SET {column} = 'b'")


def test_a_row_that_refers_to_nothing_is_refused(conn: sqlite3.Connection) -> None:
    statement = "INSERT INTO call_readings (call_id, reading, timestamp) VALUES (9, 'parsed', 'now')"
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        conn.execute(statement)


def test_text_that_is_no_unicode_is_stored_with_escapes(conn: sqlite3.Connection) -> None:
    table = SAMPLES[1][0]
    table.insert(conn, call(response="half \ud83d a pair"))
    stored = table.select(conn, "ORDER BY id")
    assert stored[0].answer.response == "half \\ud83d a pair"
