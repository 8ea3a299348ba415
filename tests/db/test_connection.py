import errno
import os
import shutil
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from testing.patience import PATIENCE

from clean_room_agent.db.connection import (
    APPLICATION_IDS,
    LITTLE,
    OpenFiles,
    Role,
    backup,
    connect_file,
    database_path,
    fault_hint,
    get_connection,
    remove_database,
    transaction,
)
from clean_room_agent.db.migrations import SCHEMA_FOLDER, migrate, migrations, version_of
from clean_room_agent.errors import RecordError, SchemaError, UsageError
from clean_room_agent.workspace import Workspace, hold

Free = Callable[[int], None]
TASK = "3f0c8a52-7c7e-4a5c-9a53-0f2f0a6f0d11"
ROLES: tuple[Role, ...] = ("curated", "raw", "session")
INSERT = "INSERT INTO events (task_id, kind, timestamp) VALUES ('t', 'k', 'now')"
COUNT = "SELECT count(*) FROM events"


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> Free:
    """Sets how many bytes are free."""
    return lambda count: monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=count))


def sqlite_error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    "error",
    [sqlite_error(sqlite3.SQLITE_FULL), OSError(errno.ENOSPC, "full"), OSError(errno.EDQUOT, "quota")],
    ids=["SQLite", "disk", "quota"],
)
def test_a_full_disk_is_said_with_its_place_whatever_is_free(
    error: Exception, free: Free, tmp_path: Path
) -> None:
    free(10 * LITTLE)
    path = tmp_path / "not" / "there" / "raw.sqlite"
    assert fault_hint(error, path) == (
        f"free some space: 10,240 kB are left on the disk that holds {path}; then continue"
    )


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_CANTOPEN])
def test_unexplained_trouble_is_put_down_to_a_disk_that_is_nearly_full(
    code: int, free: Free, tmp_path: Path
) -> None:
    free(LITTLE - 1)
    assert fault_hint(sqlite_error(code), tmp_path).startswith("free some space")
    free(LITTLE)
    assert fault_hint(sqlite_error(code), tmp_path)
    assert "free some space" not in fault_hint(sqlite_error(code), tmp_path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "raw.sqlite"
    path.write_bytes(b"x" * 100)
    return path


def fault(files: OpenFiles) -> str:
    try:
        files.require()
    except RecordError as error:
        return str(error)
    return ""


def test_a_file_that_was_removed_is_missed(path: Path) -> None:
    files = OpenFiles(path)
    path.unlink()
    with pytest.raises(RecordError, match="no longer exists") as caught:
        files.require()
    assert "start again" in caught.value.hint


def test_another_file_in_its_place_is_noticed(path: Path) -> None:
    files = OpenFiles(path)
    other = path.with_name("other")
    other.write_bytes(b"x" * 100)
    other.rename(path)
    with pytest.raises(RecordError, match="no longer exists"):
        files.require()


def test_a_file_that_lost_content_is_noticed(path: Path) -> None:
    files = OpenFiles(path)
    with path.open("r+b") as file:
        file.truncate(10)
    with pytest.raises(RecordError, match="lost its content"):
        files.require()


def test_a_journal_that_comes_later_is_watched_from_then_on_and_may_become_shorter(path: Path) -> None:
    files, journal = OpenFiles(path), path.with_name("raw.sqlite-wal")
    journal.write_bytes(b"x" * 50)
    assert fault(files) == ""
    journal.write_bytes(b"")
    assert fault(files) == ""
    journal.unlink()
    with pytest.raises(RecordError, match="wal no longer exists"):
        files.require()


def pragma(conn: sqlite3.Connection, name: str) -> object:
    return conn.execute(f"PRAGMA {name}").fetchone()[0]


@pytest.mark.parametrize("role", ROLES)
def test_a_new_database_is_private_and_set_up_for_safety(tmp_path: Path, role: Role) -> None:
    with closing(
        get_connection(role, repo_path=tmp_path, task_id=TASK if role == "session" else None)
    ) as conn:
        path = database_path(role, tmp_path, TASK if role == "session" else None)
        assert pragma(conn, "journal_mode") == "wal"
        assert pragma(conn, "foreign_keys") == 1
        assert pragma(conn, "trusted_schema") == 0
        assert pragma(conn, "busy_timeout") == 10_000
        assert pragma(conn, "application_id") == APPLICATION_IDS[role]
        assert pragma(conn, "user_version") == migrations(SCHEMA_FOLDER / role)[-1].number
        assert pragma(conn, "synchronous") == (1 if role == "curated" else 2)
        assert conn.isolation_level is None
        files = sorted(path.parent.glob(f"{path.name}*"))
        assert [file.name for file in files] == [path.name, f"{path.name}-shm", f"{path.name}-wal"]
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("role", ROLES)
def test_reading_what_does_not_exist_names_the_remedy_and_makes_nothing(tmp_path: Path, role: Role) -> None:
    with pytest.raises(UsageError) as caught:
        get_connection(role, repo_path=tmp_path, task_id=TASK, read_only=True)
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_read_only_connection_reads_beside_a_writer_and_cannot_write(tmp_path: Path) -> None:
    with (
        closing(get_connection("raw", repo_path=tmp_path)) as writer,
        closing(get_connection("raw", repo_path=tmp_path, read_only=True)) as reader,
    ):
        writer.execute(INSERT)
        assert reader.execute(COUNT).fetchone()[0] == 1
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute(INSERT)
    with closing(get_connection("raw", repo_path=tmp_path, read_only=True)) as reader:
        assert reader.execute(COUNT).fetchone()["count(*)"] == 1


def test_a_record_in_a_folder_that_cannot_be_written_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(get_connection("raw", repo_path=tmp_path)) as writer:
        writer.execute(INSERT)
    files = sorted(database_path("raw", tmp_path).parent.iterdir())
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != files[0].parent)
    with closing(get_connection("raw", repo_path=tmp_path, read_only=True)) as reader:
        assert reader.execute(COUNT).fetchone()[0] == 1
        assert sorted(files[0].parent.iterdir()) == files, "nothing is made beside it"


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "raw.sqlite"
    path.write_bytes(b"not a database at all, but long enough to be looked at" * 20)
    before = path.read_bytes()
    for read_only in (True, False):
        with pytest.raises(SchemaError, match=r"raw\.sqlite") as caught:
            connect_file("raw", path, read_only=read_only)
        assert caught.value.hint
    assert path.read_bytes() == before


def test_a_database_of_somebody_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "raw.sqlite"
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    for read_only in (True, False):
        with pytest.raises(SchemaError, match="database, but something else"):
            connect_file("raw", path, read_only=read_only)
    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_database_but_cannot_be_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "raw.sqlite"
    path.touch(mode=0o644)
    with pytest.raises(SchemaError, match="empty"):
        connect_file("raw", path, read_only=True)
    connect_file("raw", path).close()
    connect_file("raw", path, read_only=True).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("seen", [0, 1])
def test_who_reads_waits_for_a_record_that_another_process_is_making(tmp_path: Path, seen: int) -> None:
    """Two first runs of a repository start at once: one looks into the record while the other makes it."""
    workspace = Workspace(repo=tmp_path)
    workspace.create()
    versions: list[int] = []

    def read() -> None:
        with closing(get_connection("raw", repo_path=tmp_path, read_only=True)) as conn:
            versions.append(version_of(conn))

    reader = threading.Thread(target=read)
    first = tmp_path / "first"
    first.mkdir()
    shutil.copy(migrations(SCHEMA_FOLDER / "raw")[0].path, first)
    with closing(sqlite3.connect(workspace.raw, isolation_level=None)) as maker, hold(workspace.folder):
        if seen:
            migrate(maker, first, application_id=APPLICATION_IDS["raw"])
        reader.start()
        reader.join(0.2)
        assert (reader.is_alive(), versions) == (True, [])
        migrate(maker, SCHEMA_FOLDER / "raw", application_id=APPLICATION_IDS["raw"])
    reader.join(PATIENCE)
    assert versions == [migrations(SCHEMA_FOLDER / "raw")[-1].number]


def test_a_newer_file_is_refused_by_number(tmp_path: Path) -> None:
    path = tmp_path / "raw.sqlite"
    with closing(connect_file("raw", path)) as conn:
        conn.execute("PRAGMA user_version = 99")
    for read_only in (True, False):
        with pytest.raises(SchemaError, match=r"schema 99; this program knows \d"):
            connect_file("raw", path, read_only=read_only)


def test_many_threads_open_a_new_database_at_once(tmp_path: Path) -> None:
    failures: list[BaseException] = []
    barrier = threading.Barrier(8)

    def open_it() -> None:
        barrier.wait()
        try:
            get_connection("raw", repo_path=tmp_path).close()
        except Exception as exc:  # noqa: BLE001 - reported below
            failures.append(exc)

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_backup_holds_what_still_stands_in_the_journal(tmp_path: Path) -> None:
    target = tmp_path / "copy.sqlite"
    target.write_text("an older copy")
    with closing(get_connection("raw", repo_path=tmp_path)) as conn:
        conn.execute(INSERT)
        backup(conn, target)
        conn.execute(INSERT)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == [".clean_room", "copy.sqlite"]
    with closing(connect_file("raw", target)) as copy:
        assert copy.execute(COUNT).fetchone()[0] == 1
        copy.execute(INSERT)
    remove_database(target)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".clean_room"]


def test_a_full_database_is_an_error_of_ours_with_the_remedy(tmp_path: Path) -> None:
    with closing(get_connection("curated", repo_path=tmp_path)) as conn:
        pages = conn.execute("PRAGMA page_count").fetchone()[0]
        conn.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(RecordError, match="database or disk is full") as caught, transaction(conn):
            conn.execute("INSERT INTO index_state VALUES ('k', ?)", ("x" * 100_000,))
        assert caught.value.hint.startswith("free some space: ")
        with pytest.raises(sqlite3.IntegrityError), transaction(conn):
            conn.execute("INSERT INTO index_state VALUES (NULL, NULL)")


def test_a_transaction_is_all_or_nothing(tmp_path: Path) -> None:
    def fail_halfway(conn: sqlite3.Connection) -> None:
        with transaction(conn):
            conn.execute(INSERT)
            raise KeyError

    with closing(get_connection("raw", repo_path=tmp_path)) as conn:
        with pytest.raises(KeyError):
            fail_halfway(conn)
        assert conn.execute(COUNT).fetchone()[0] == 0
        with transaction(conn):
            conn.execute(INSERT)
        assert conn.execute(COUNT).fetchone()[0] == 1


@pytest.mark.parametrize("read_only", [True, False])
def test_a_database_is_not_opened_by_way_of_a_link(tmp_path: Path, *, read_only: bool) -> None:
    target = tmp_path / "target"
    with closing(connect_file("raw", target)):
        pass
    target.chmod(0o644)
    link = tmp_path / "raw.sqlite"
    link.symlink_to(target)
    with pytest.raises(RecordError):
        connect_file("raw", link, read_only=read_only)
    assert stat.S_IMODE(target.stat().st_mode) == 0o644


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_a_journal_that_is_a_link_is_not_written_through(tmp_path: Path, suffix: str) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    path = tmp_path / "raw.sqlite"
    path.with_name(path.name + suffix).symlink_to(target)
    with suppress(RecordError, sqlite3.Error), closing(connect_file("raw", path)) as conn, transaction(conn):
        conn.execute(INSERT)
    assert target.read_text() == "mine"


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(("make", "kind"), [(os.mkfifo, "a FIFO"), (os.mkdir, "a folder")])
def test_what_is_no_file_is_refused_before_sqlite_waits_for_it(
    tmp_path: Path, end: str, read_only: bool, make: Callable[[Path], object], kind: str
) -> None:
    path = tmp_path / "raw.sqlite"
    if end:
        connect_file("raw", path).close()
    make(tmp_path / f"raw.sqlite{end}")
    with pytest.raises(RecordError, match=f"raw.sqlite{end} is {kind}, not a file"):
        connect_file("raw", path, read_only=read_only)
