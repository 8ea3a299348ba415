import errno
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from clean_room_agent.db.disk_full import LITTLE, code_of, file_of, free_space_hint

Free = Callable[[int], None]


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> Free:
    """Sets how many bytes are free."""
    return lambda count: monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=count))


def sqlite_error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    return error


def test_an_extended_code_counts_as_its_primary_one() -> None:
    assert code_of(sqlite_error(sqlite3.SQLITE_IOERR_WRITE)) == sqlite3.SQLITE_IOERR
    assert code_of(OSError()) == 0


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
    assert free_space_hint(error, path) == (
        f"make room: 10,240 kB are left on the disk that holds {path}; then go on"
    )


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_CANTOPEN])
def test_unexplained_trouble_is_put_down_to_a_disk_that_is_nearly_full(
    code: int, free: Free, tmp_path: Path
) -> None:
    free(LITTLE - 1)
    assert free_space_hint(sqlite_error(code), tmp_path)
    free(LITTLE)
    assert free_space_hint(sqlite_error(code), tmp_path) == ""


def test_other_trouble_never_is(free: Free, tmp_path: Path) -> None:
    free(0)
    for error in (sqlite_error(sqlite3.SQLITE_CONSTRAINT), OSError(errno.EACCES, "no"), ValueError()):
        assert free_space_hint(error, tmp_path) == ""


def test_a_connection_knows_its_file(tmp_path: Path) -> None:
    conn = sqlite3.connect(tmp_path / "a.sqlite")
    conn.execute("CREATE TABLE t (x)")
    assert file_of(conn) == tmp_path / "a.sqlite"
    conn.close()
