"""The one place that opens databases: their path, mode and pragmas, and whether a file is ours.

It also notices when an open file was moved or replaced, and when an error is really a full disk.
"""

import contextlib
import errno
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from clean_room_agent.db.migrations import SCHEMA_FOLDER, is_blank, migrate, migrations, version_of
from clean_room_agent.errors import RecordError, SchemaError, UsageError, remedy_for
from clean_room_agent.safe_open import KINDS
from clean_room_agent.workspace import Workspace, hold

LITTLE = 1 << 20
"""Bytes; where fewer are free, an unexplained failure to read or write is put down to that."""
FULL = (sqlite3.SQLITE_FULL,)
UNEXPLAINED = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
BROKEN = (*FULL, *UNEXPLAINED, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOMEM)
"""What is wrong with the machine, not with what was asked."""
HINT = "somebody removed or replaced it while it was in use; what was done since is not recorded: start again"
SYSTEM_NUMBERS = {
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_NOMEM: errno.ENOMEM,
}
"""The error of the system that each of SQLite's is most like."""
Role = Literal["curated", "raw", "session"]
BUSY_TIMEOUT = 10.0
APPLICATION_IDS: dict[Role, int] = {"curated": 0x43524143, "raw": 0x43524152, "session": 0x43524153}
"""In the file's header: "CRA" and the role's letter."""
SYNCHRONOUS: dict[Role, str] = {"curated": "NORMAL", "raw": "FULL", "session": "FULL"}
"""NORMAL may lose acknowledged rows at power loss, never when the process dies. What can be indexed again may be lost; what
a resumed run takes as done may not."""
MISSING: dict[Role, str] = {
    "curated": "run `cra index` in the repository",
    "raw": "nothing has been recorded here yet: the first task creates it",
    "session": "the task has ended, or never began; `cra runs` lists the tasks",
}
DAMAGED: dict[Role, str] = {
    "curated": "`cra index --full` builds it anew",
    "raw": "`cra check --record` says what is wrong with it; restore raw.sqlite from a copy, or move it away with its -wal: the "
    "next task begins a new record",
    "session": "move it away: its task cannot be resumed, but its record stays",
}
"""What to do about a damaged file."""
NOT_A_DATABASE = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)


def code_of(error: BaseException) -> int:
    """SQLite's primary error code; 0 if it is not an error of SQLite."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def file_of(conn: sqlite3.Connection) -> Path:
    """The file that the connection is open on."""
    return Path(conn.execute("PRAGMA database_list").fetchone()[2])


def fault_hint(error: BaseException, path: Path) -> str:
    """What to do about an error of the machine at `path`, such as to free space on a full disk; "" if nothing is known."""
    import shutil  # noqa: PLC0415 - loads compression modules, and is needed only where something failed

    free = shutil.disk_usage(next(place for place in (path, *path.parents) if place.exists())).free
    full = code_of(error) in FULL or (
        isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}
    )
    if not full and not (code_of(error) in UNEXPLAINED and free < LITTLE):
        number = SYSTEM_NUMBERS.get(code_of(error), 0)
        return remedy_for(error if isinstance(error, OSError) else OSError(number, ""))
    return f"free some space: {free // 1024:,} kB are left on the disk that holds {os.fspath(path)}; then continue"


class OpenFiles:
    """The identity of an open database and its journal, as first seen."""

    def __init__(self, path: Path) -> None:
        self._paths = (path, path.with_name(f"{path.name}-wal"))
        self._known: dict[Path, os.stat_result] = {}
        for each in self._paths:
            self._look_at(each)

    def require(self) -> None:
        """Check that the files are still where they were.

        Raises:
            RecordError: one is gone, has become shorter, or was replaced by another.
        """
        for path in self._paths:
            known = self._known.get(path)
            now = self._look_at(path)
            if known is None:
                continue
            if now is None or not os.path.samestat(known, now):
                raise RecordError(f"{path} no longer exists", hint=HINT)
            if path == self._paths[0] and now.st_size < known.st_size:
                raise RecordError(f"{path} has lost its content", hint=HINT)

    def _look_at(self, path: Path) -> os.stat_result | None:
        try:
            found = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - before each commit; a Path's own takes twice as long
        except OSError:
            return None
        self._known.setdefault(path, found)
        return found


def database_path(role: Role, repo_path: Path, task_id: str | None = None) -> Path:
    """Path of the database of a role; for role curated, a task id selects that run's own copy.

    Raises:
        UsageError: a session was asked for without a task, or the task id is malformed.
    """
    workspace = Workspace(repo=repo_path)
    if role == "raw":
        return workspace.raw
    if role == "curated":
        return workspace.curated if task_id is None else workspace.run_copy(task_id)
    if task_id is None:
        raise UsageError("a session belongs to a task, and none was named")
    return workspace.session(task_id)


def get_connection(
    role: Role, *, repo_path: Path, task_id: str | None = None, read_only: bool = False
) -> sqlite3.Connection:
    """Open the role's database with this program's schema; see `connect_file`.

    An older record is migrated even for a reader, because nobody could rebuild it.

    Raises:
        UsageError: read-only, and the file does not exist.
        SchemaError: the file is newer than the program, or not ours.
        RecordError: it cannot be opened.
    """
    path = database_path(role, repo_path, task_id)
    if not read_only:
        Workspace(repo=repo_path).create()
    elif role == "raw" and path.exists():
        _complete_record(path)
    return connect_file(role, path, read_only=read_only)


def read_record(repo_path: Path) -> contextlib.closing[sqlite3.Connection]:
    """The record, to be only read; it is closed at the end. Raises what `get_connection` does."""
    return contextlib.closing(get_connection("raw", repo_path=repo_path, read_only=True))


def _complete_record(record: Path) -> None:
    """Migrate a record of an earlier version, or wait for the process that is just creating it."""
    if _schema_of(record) == 0:
        with _translated_errors(record), hold(record.parent, timeout=BUSY_TIMEOUT):
            pass  # who makes a record holds its folder until all is there
    if 0 < _schema_of(record) < migrations(SCHEMA_FOLDER / "raw")[-1].number:
        connect_file("raw", record).close()


def _schema_of(record: Path) -> int:
    """The number of its last migration; 0 for an empty file, or one that is not a record of ours."""
    with (
        _translated_errors(record),
        contextlib.closing(_open_connection(record, read_only=True, any_thread=False)) as conn,
    ):
        ours = conn.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_IDS["raw"]
        return version_of(conn) if ours else 0


def connect_file(
    role: Role, path: Path, *, read_only: bool = False, any_thread: bool = False, schema: Path = SCHEMA_FOLDER
) -> sqlite3.Connection:
    """Open the database at `path` in autocommit mode with `sqlite3.Row`; its folder must exist.

    When opened for writing, a missing file is created (0600) and an older one is migrated. When opened read-only,
    nothing is created or changed, and an older file is an error.

    Args:
        role: what the file holds.
        path: the file.
        read_only: refuse writes.
        any_thread: let other threads use the connection, one at a time.
        schema: the folder with the roles' migrations.

    Raises:
        UsageError: read-only, and the file does not exist.
        SchemaError: the file is newer than the program, older and read-only, or not ours.
        RecordError: it cannot be opened.
    """
    if read_only and not path.exists():
        raise UsageError(f"there is no {role} database at {path}", hint=MISSING[role])
    with _translated_errors(path), contextlib.ExitStack() as on_error:
        # One process at a time per folder: SQLite does not wait for others when it switches a new file to WAL.
        locked = contextlib.nullcontext() if read_only else hold(path.parent, timeout=BUSY_TIMEOUT)
        with locked:
            conn = _open_connection(path, read_only=read_only, any_thread=any_thread)
            on_error.callback(conn.close)
            _set_up(conn, role, read_only=read_only)
            _check_schema(conn, role, path, schema / role, read_only=read_only)
            if not read_only:
                conn.execute("PRAGMA journal_mode = WAL")
                migrate(conn, schema / role, application_id=APPLICATION_IDS[role])
        on_error.pop_all()
    return conn


def connect_memory(role: Role) -> sqlite3.Connection:
    """Open a new in-memory database of the role; it is gone once closed.

    Foreign keys are not enforced, since rows may refer to rows that nobody kept.
    """
    conn = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _set_up(conn, role, read_only=False)
    migrate(conn, SCHEMA_FOLDER / role, application_id=APPLICATION_IDS[role])
    conn.execute("PRAGMA foreign_keys = OFF")
    return conn


def connect_bare(path: Path) -> sqlite3.Connection:
    """Connect in autocommit mode to a database under construction, without checks, migrations or pragmas.

    Raises:
        RecordError: there is no such file.
    """
    try:
        return _open_connection(path, read_only=False, any_thread=False, make=False)
    except FileNotFoundError as exc:
        raise RecordError(
            f"{path} is gone: another process is building the index", hint="start again"
        ) from exc


def backup(source: sqlite3.Connection, target_path: Path) -> None:
    """Copy the database to `target_path` (0600), replacing what was there.

    Copying the file alone would miss what is still in the journal. The copy is not synced: it serves a single run, which
    a power failure would end anyway.

    Raises:
        RecordError: the copy cannot be written.
    """
    temporary = target_path.with_name(f"{target_path.name}.part")
    with _translated_errors(target_path):
        remove_database(temporary)
        target = _open_connection(temporary, read_only=False, any_thread=False)
        with contextlib.closing(target):
            target.execute("PRAGMA synchronous = OFF")
            source.backup(target)
        remove_database(target_path)
        temporary.replace(target_path)


def is_sound_index(path: Path) -> bool:
    """Whether there is an undamaged index at `path`, with this program's schema."""
    try:
        with contextlib.closing(connect_file("curated", path, read_only=True)) as conn:
            return [row[0] for row in conn.execute("PRAGMA quick_check(1)")] == ["ok"]
    except (UsageError, RecordError, sqlite3.DatabaseError):
        return False


def backup_into(source: sqlite3.Connection, path: Path) -> None:
    """Replace the content of the database at `path` by that of `source`; readers see either the old or the new.

    Raises:
        RecordError: it cannot be written, or other processes kept it busy.
    """
    with (
        _translated_errors(path),
        contextlib.closing(_open_connection(path, read_only=False, any_thread=False)) as target,
    ):
        target.execute("PRAGMA journal_mode = WAL")
        source.backup(target)


def remove_database(path: Path) -> None:
    """Delete the database and its journal, if they exist."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm", f"{path.name}-journal"):
        path.with_name(name).unlink(missing_ok=True)


@contextlib.contextmanager
def transaction(conn: sqlite3.Connection) -> Iterator[None]:
    """Commit everything in the block, or nothing if it raises.

    IMMEDIATE, because a deferred transaction fails as busy when it is upgraded.

    Raises:
        RecordError: the machine failed: a full disk, a lock that was not released, a file that cannot be written.
        sqlite3.Error: anything else that the database refuses.
    """
    try:
        conn.execute("BEGIN IMMEDIATE")
        yield
        conn.execute("COMMIT")
    except sqlite3.Error as exc:
        if code_of(exc) not in BROKEN:
            raise
        path = file_of(conn)
        raise RecordError(f"cannot write {path}: {exc}", hint=fault_hint(exc, path)) from exc
    finally:
        if conn.in_transaction:
            conn.execute("ROLLBACK")


def _open_connection(
    path: Path, *, read_only: bool, any_thread: bool, make: bool = True
) -> sqlite3.Connection:
    for end in ("", "-wal", "-shm", "-journal"):
        with contextlib.suppress(FileNotFoundError):
            found = path.with_name(path.name + end)
            kind = stat.S_IFMT(found.lstat().st_mode)
            if kind != stat.S_IFREG:  # SQLite would follow a link, and wait for a FIFO
                raise RecordError(f"{found} is {KINDS[kind]}, not a file", hint="remove it, or move it away")
    if not read_only:
        # SQLite would create it with the umask's mode. Its journals inherit the file's mode, and it follows no links
        # to them.
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if make else 0)
        handle = os.open(path, flags, 0o600)
        try:
            if os.fstat(handle).st_mode & 0o077:
                os.fchmod(handle, 0o600)
        finally:
            os.close(handle)
    mode = "rw"
    if read_only:  # a reader makes files beside the database, unless it is told that nobody writes it
        journal = path.with_name(f"{path.name}-wal")
        frozen = not os.access(path.parent, os.W_OK) and not (journal.exists() and journal.stat().st_size)
        mode = "ro&immutable=1" if frozen else "ro"
    uri = f"file:{quote(os.fspath(path))}?mode={mode}"
    return sqlite3.connect(
        uri, uri=True, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=not any_thread
    )


def _set_up(conn: sqlite3.Connection, role: Role, *, read_only: bool) -> None:
    conn.row_factory = sqlite3.Row
    conn.execute("PRAGMA trusted_schema = OFF")
    conn.execute("PRAGMA foreign_keys = ON")
    conn.execute("PRAGMA recursive_triggers = ON")  # without it, REPLACE deletes rows and no trigger sees it
    conn.execute(f"PRAGMA synchronous = {SYNCHRONOUS[role]}")
    if read_only:
        conn.execute("PRAGMA query_only = ON")


def _check_schema(conn: sqlite3.Connection, role: Role, path: Path, folder: Path, *, read_only: bool) -> None:
    version = version_of(conn)
    newest = migrations(folder)[-1].number
    blank = is_blank(conn)
    if blank and not read_only:
        return
    application = conn.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_IDS[role]:
        kind = "an empty file" if blank else "something else"
        raise SchemaError(
            f"{path} is not the {role} database, but {kind}", hint="move it away, then run the command again"
        )
    if version > newest:
        raise SchemaError(
            f"{path} has schema {version}; this program knows {newest}",
            hint="use the newer version of the program",
        )
    if version < newest and read_only:
        raise SchemaError(
            f"{path} has schema {version}; this program needs {newest}",
            hint="run `cra index`: it brings the file up to date"
            if role == "curated"
            else "any task brings it up to date",
        )


def _role_of(path: Path) -> Role:
    """What a file of that name holds."""
    return next((role for role in ("curated", "session") if path.name.startswith(role)), "raw")


@contextlib.contextmanager
def _translated_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (
        sqlite3.DatabaseError,
        UnicodeDecodeError,
    ) as exc:  # the latter: of a name in SQLite's own message
        if code_of(exc) in NOT_A_DATABASE or isinstance(exc, UnicodeDecodeError):
            raise SchemaError(f"{path} is damaged: {exc}", hint=DAMAGED[_role_of(path)]) from exc
        raise RecordError(f"cannot open {path}: {exc}", hint=fault_hint(exc, path)) from exc
    except OSError as exc:
        raise RecordError(f"cannot open {path}: {exc}", hint=fault_hint(exc, path)) from exc
