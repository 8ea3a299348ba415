"""The layout of `.clean_room` and the worktrees' folder, locks between processes, and which `.clean_room` folders this user made:
one that came with a repository is not trusted.

A folder is the user's own if a note in the user's state folder, outside of any repository, has its path, its inode and
the random key that is stored in it. The key distinguishes it from another folder with the reused inode of a deleted
one; the device number is left out, since it may change at each boot.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from clean_room_agent.artifacts.names import task_of
from clean_room_agent.errors import RecordError, RepositoryError, UsageError
from clean_room_agent.file_contents import atomic_write, sync_folder
from clean_room_agent.folders import flock, user_folder
from clean_room_agent.git.repository import tracked_below
from clean_room_agent.safe_open import KINDS, read_bytes

FOLDER = ".clean_room"
LOCK_TIMEOUT = 10.0
LOCK_POLL = 0.001
PID_WIDTH = 20
CACHE_HINT = (
    "worktrees are made there: let XDG_CACHE_HOME, or [worktree] root, name a folder that can be written"
)
KEY_BYTES = 32
TASK_ID = r"[A-Za-z0-9_-]{1,64}"


class Workspace(Struct, frozen=True, kw_only=True):
    """The paths of one repository. Nothing is created or read before `create`."""

    repo: Path
    """Absolute, of the working tree's root."""

    @property
    def folder(self) -> Path:
        """The folder of everything that the program keeps in the repository."""
        return self.repo / FOLDER

    @property
    def config(self) -> Path:
        """Written by `cra init`."""
        return self.folder / "config.toml"

    @property
    def curated(self) -> Path:
        """The index of the repository."""
        return self.folder / "curated.sqlite"

    @property
    def raw(self) -> Path:
        """The record of everything that happened."""
        return self.folder / "raw.sqlite"

    @property
    def raw_lock(self) -> Path:
        """The lock for writing the record."""
        return self.folder / "raw.lock"

    @property
    def apply_lock(self) -> Path:
        """The lock for replacing files of the working tree."""
        return self.folder / "apply.lock"

    @property
    def redaction_key(self) -> Path:
        """The key for hashing secrets in output, so that the same secret always looks the same."""
        return self.folder / "redaction.key"

    @property
    def index_lock(self) -> Path:
        """The lock for indexing."""
        return self.folder / "index.lock"

    @property
    def adapters(self) -> Path:
        """The folder from which servers load trained adapters."""
        return self.folder / "adapters"

    @property
    def adapters_lock(self) -> Path:
        """The lock for changing which adapter is used for a prompt."""
        return self.folder / "adapters.lock"

    @property
    def log(self) -> Path:
        """The file for the traceback of a bug."""
        return self.folder / "error.log"

    @property
    def sessions(self) -> Path:
        """The folder of working memories of tasks in progress."""
        return self.folder / "sessions"

    def session(self, task_id: str) -> Path:
        """The working memory of a task, or of the task that a pass belongs to."""
        return self.sessions / f"session_{_file_part(task_id)}.sqlite"

    def run_copy(self, task_id: str) -> Path:
        """A run's own copy of the curated database, removed at its end."""
        return self.sessions / f"curated_{_file_part(task_id)}.sqlite"

    def task_lock(self, task_id: str) -> Path:
        """Held by the process that runs the task."""
        return self.sessions / f"task_{_file_part(task_id)}.lock"

    def worktrees(self, cache: Path) -> Path:
        """This repository's folder for worktrees in the user's cache: its name and a short hash of its path."""
        path = str(self.repo.resolve())
        name = re.sub(r"[^A-Za-z0-9._-]", "_", self.repo.resolve().name) or "repository"
        return cache / "worktrees" / f"{name}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}"

    def secret_key(self) -> bytes:
        """The key that secrets are hashed with, created if missing; the folder must exist."""
        if not self.redaction_key.exists():
            atomic_write(self.redaction_key, os.urandom(KEY_BYTES), private=True)
        return self.redaction_key.read_bytes()

    def create(self) -> None:
        """Create the folders, readable only by the user and ignored by git; the user's .gitignore is untouched.

        Raises:
            UsageError: somebody else made the folder, it is a link, or it cannot be created.
        """
        try:
            claim(self.folder)
            for folder in (self.folder, self.sessions):
                make_private(folder)
                require_writable(folder)
                close_files(folder)
            ignore = self.folder / ".gitignore"
            if not ignore.exists():
                atomic_write(ignore, "*\n", private=True)
        except OSError as exc:
            if exc.errno in SHORT_OF:
                raise
            place = Path(exc.filename or self.folder)
            raise UsageError(
                f"cannot make {place}: {exc.strerror}", hint=f"{place.parent} must be yours, and writable"
            ) from exc


def trusted_workspace(top: Path, listed: Iterable[str] | None = None) -> Workspace:
    """The workspace of the repository at `top`, for a command that a user gave; `listed` as in `require_trust`.

    Raises:
        UsageError: its folder was made by somebody else, git tracks something in it, or it contains a link.
    """
    workspace = Workspace(repo=top)
    require_trust(workspace.folder, listed)
    return workspace


@contextlib.contextmanager
def tree_lock(workspace: Workspace) -> Iterator[None]:
    """Hold the lock for replacing files of the working tree.

    Raises:
        RepositoryError: another process holds it, or it cannot be locked.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(hold(workspace.apply_lock, what="the working tree"))
        except RecordError as exc:
            raise RepositoryError(f"{exc.message}; nothing was changed", hint=exc.hint) from exc
        except OSError as exc:
            raise RepositoryError(
                f"cannot lock {workspace.apply_lock}: {exc.strerror}; nothing was changed",
                hint="the folder must be writable, with some space",
            ) from exc
        yield


def close_files(folder: Path) -> None:
    """Make all files in `folder` readable by the user only.

    Raises:
        UsageError: there is a link.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                raise UsageError(f"{entry.path} is a link", hint="remove it: links are not followed there")
            with contextlib.suppress(FileNotFoundError):  # a journal may go with its database at any time
                if entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mode & 0o077:
                    Path(entry.path).chmod(0o600)


def require_writable(folder: Path, *, hint: str = "") -> None:
    """Check that the user can make files in the folder.

    Raises:
        UsageError: they cannot.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint=hint or "move it away")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(
            f"{folder} cannot be written",
            hint=hint or f"let your user write it: chmod u+wx {folder}, or mount it so",
        )


def private_folder(folder: Path, *, hint: str = "") -> Path:
    """Create the folder and its missing parents, and check that it can be written; a folder created here is inaccessible to
    others. `hint`: what to do if it cannot.

    Raises:
        UsageError: it cannot be created or written.
    """
    try:
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            make_private(folder)
    except OSError as exc:
        if exc.errno in {errno.ENOSPC, errno.EDQUOT, *SHORT_OF}:
            raise
        told = f"let {folder.parent} be writable"
        raise UsageError(f"cannot make {folder}: {exc.strerror}", hint=hint or told) from exc
    require_writable(folder, hint=hint)
    return folder


def make_private(folder: Path) -> None:
    """Create the folder if it is missing, and make it accessible only to the user; its parent must exist."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


@contextlib.contextmanager
def hold(lock: Path, *, timeout: float = LOCK_TIMEOUT, what: str = "") -> Iterator[None]:
    """Hold the lock on `lock` (a file, or an existing folder); the kernel releases it when the process dies.

    A process that is forked meanwhile and does not close inherited files holds it, too. A lock file names its holder.

    Args:
        lock: a missing file is created, and stays.
        timeout: seconds of waiting; 0 tries once. Time in which the machine, or this process, is suspended does not
            count, since the holder of the lock may have been suspended, too.
        what: what the lock protects, for the message.

    Raises:
        RecordError: another process, or another `hold` of this one, kept it all the time; or the file system gives no locks.
    """
    handle = _acquire_lock(lock, timeout, what)
    try:
        if not lock.is_dir():
            with contextlib.suppress(OSError):  # on a full disk the lock holds without the holder's name
                os.pwrite(handle, f"{os.getpid():<{PID_WIDTH}}".encode(), 0)
        yield
    finally:
        os.close(handle)


def is_held(lock: Path) -> bool:
    """Whether a process holds `lock` now; a lock that does not exist is not held."""
    try:
        handle = os.open(lock, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB, lock)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _acquire_lock(lock: Path, timeout: float, what: str) -> int:
    """A descriptor that holds the lock; repeated if the file was deleted meanwhile, as a lock on a deleted file
    excludes nobody.
    """
    turns = iter(range(round(timeout / LOCK_POLL)))
    while True:
        flags = os.O_RDONLY if lock.is_dir() else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        handle = _open_lock(lock, flags | os.O_CLOEXEC)
        try:
            _wait_for_lock(handle, lock, turns, what)
            if _is_same_file(lock, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _open_lock(lock: Path, flags: int) -> int:
    try:
        return os.open(lock, flags, 0o600)
    except OSError as exc:
        if exc.errno != errno.ELOOP:
            raise
        raise RecordError(f"{lock} is a link", hint="remove it: links are not followed there") from exc


def _wait_for_lock(handle: int, lock: Path, turns: Iterator[int], what: str) -> None:
    while True:
        try:
            flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, lock)
        except BlockingIOError as exc:
            if next(turns, None) is None:
                raise RecordError(
                    f"{_lock_holder(handle, lock)} holds {what or lock.name} ({lock})",
                    hint="wait for it, or look for another `cra` in this repository",
                ) from exc
            time.sleep(LOCK_POLL)
        else:
            return


def _is_same_file(lock: Path, handle: int) -> bool:
    """Whether the path still leads to the open file."""
    try:
        return os.path.samestat(lock.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _lock_holder(handle: int, lock: Path) -> str:
    number = "" if lock.is_dir() else os.pread(handle, PID_WIDTH, 0).decode("ascii", "replace").strip()
    return f"process {number}" if number.isdigit() else "another process"


def _file_part(task_id: str) -> str:
    task = task_of(task_id)
    if re.fullmatch(TASK_ID, task) is None:
        raise UsageError(f"{task!r} cannot be the id of a task")
    return task


KEY = "trust.key"
MAX_DEPTH = 40
SHORT_OF = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO})
"""Errors that say nothing about the folder."""
NOTES = "folders"
TRUST_COMMAND = "cra init --trust"


def state_folder() -> Path:
    """The user's state folder for this program.

    Raises:
        UsageError: there is no home folder.
    """
    return user_folder("XDG_STATE_HOME", ".local/state") / "cra"


def require_trust(folder: Path, listed: Iterable[str] | None = None) -> None:
    """Check that the `.clean_room` of a repository is the user's own or does not exist, that git tracks nothing in it,
    and that it contains nothing but files and folders.

    Args:
        folder: it, whether it exists or not.
        listed: the paths that git tracks or would offer to add, if they are known: git is then only asked again if one
            of them begins with the folder's name, in any case.

    Raises:
        UsageError: it is not; nothing of it was used.
    """
    name = folder.name.lower()
    if listed is None or any(path[: len(name)].lower() == name for path in listed):
        _refuse_tracked(folder)
    if os.path.lexists(folder):
        _refuse_foreign(folder)
        _refuse_special_files(folder)


def claim(folder: Path) -> None:
    """Make sure that the folder exists and is the user's own; if it is missing or still empty, it is created (0700).

    Raises:
        UsageError: somebody else made it, or the state folder cannot be written.
        OSError: it cannot be created.
    """
    if is_ours(folder):
        return
    _refuse_link(folder)
    with _one_at_a_time():
        if is_ours(folder):
            return
        if not _is_new(folder):
            raise _foreign_error(folder)
        if not folder.exists():
            folder.mkdir(mode=0o700)
            sync_folder(folder.parent)
        _note_down(folder)


def trust(folder: Path) -> None:
    """Trust the folder from now on, whoever made it.

    Raises:
        UsageError: git tracks something in it, it is a link, or it contains a link, a FIFO, a socket or a device.
    """
    _refuse_tracked(folder)
    _refuse_link(folder)
    _refuse_special_files(folder)
    with _one_at_a_time():
        _note_down(folder)


def forget(folder: Path) -> None:
    """Stop trusting the folder."""
    _note_of(folder).unlink(missing_ok=True)


def is_ours(folder: Path) -> bool:
    """Whether this user made the folder, or trusted it at its current path."""
    try:
        key = read_bytes(folder, KEY, max_bytes=2 * KEY_BYTES)
        return read_bytes(_note_of(folder).parent, _note_of(folder).name) == _trust_note(folder, key)
    except OSError as exc:
        if exc.errno in SHORT_OF:
            raise
        return False


def _is_new(folder: Path) -> bool:
    """Whether the folder contains at most what a process that died while creating it may have left."""
    try:
        return {*os.listdir(folder)} <= {KEY}  # noqa: PTH208 - names alone
    except FileNotFoundError:
        return True
    except OSError:  # a file, or somebody else's
        return False


def _refuse_foreign(folder: Path) -> None:
    _refuse_link(folder)
    if is_ours(folder):
        return
    with _one_at_a_time():  # another process may be about to make it
        if not is_ours(folder) and not _is_new(folder):
            raise _foreign_error(folder)


def _refuse_tracked(folder: Path) -> None:
    tracked = tracked_below(folder.parent, folder.name)
    if tracked:
        forget(folder)
        raise UsageError(
            f"git tracks {tracked[0]}: it came with the repository, so it is not used",
            hint=f"remove it with its files: git rm -r -f {Path(tracked[0]).parts[0]}; then commit that, and run `cra init`",
        )


def _refuse_link(folder: Path) -> None:
    if folder.is_symlink():
        raise UsageError(f"{folder} is a link", hint="remove it: the record belongs in the repository itself")


def _refuse_special_files(folder: Path) -> None:
    """Refuse what is neither a file nor a folder: a link leads anywhere, and a FIFO never answers."""
    for entry in entries_below(folder):
        if entry.is_symlink():
            raise UsageError(f"{entry.path} is a link", hint="remove it: links are not followed there")
        if not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(FileNotFoundError):
                kind = KINDS[stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode)]
                raise UsageError(f"{entry.path} is {kind}", hint="remove it: cra makes only files there")


def entries_below(folder: Path) -> Iterator["os.DirEntry[str]"]:
    """Everything below the folder of a workspace, sorted by name within each folder; unreadable folders are left out.

    Raises:
        UsageError: folders are nested more deeply in it than this program ever does.
    """
    waiting = [(os.fspath(folder), 0)]
    while waiting:
        at, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise UsageError(
                f"folders are nested too deeply in {folder}: {at}",
                hint="remove them: cra never nests folders so deeply",
            )
        with contextlib.suppress(OSError), os.scandir(at) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, depth + 1))


def _foreign_error(folder: Path) -> UsageError:
    return UsageError(
        f"{folder} is not known to be yours: it came with the repository, was moved or copied, or an older cra made it",
        hint="its config.toml says what runs here and where prompts go: read it, then give "
        f"`{TRUST_COMMAND}`; or delete the folder",
    )


def _note_down(folder: Path) -> None:
    """Write a new key to the note and to the folder, in this order, since a folder without a key counts as new."""
    key = os.urandom(KEY_BYTES).hex().encode()
    atomic_write(_note_of(folder), _trust_note(folder, key), private=True)
    (folder / KEY).unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(folder / KEY, flags, 0o600), "wb") as file:  # noqa: PTH123 - a handle, not a path
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(folder)


def _note_of(folder: Path) -> Path:
    name = hashlib.sha256(os.fsencode(_canonical_path(folder))).hexdigest()[:32]
    return state_folder() / NOTES / name


def _trust_note(folder: Path, key: bytes) -> bytes:
    found = folder.lstat()
    kind = b"folder" if stat.S_ISDIR(found.st_mode) else b"other"
    return b"%s\n%s %d\n%s\n" % (os.fsencode(_canonical_path(folder)), kind, found.st_ino, key)


def _canonical_path(folder: Path) -> Path:
    """The folder's canonical path, whatever links lead to the repository."""
    return folder.parent.resolve() / folder.name


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Hold the lock for creating folders."""
    notes = state_folder() / NOTES
    try:
        for folder in (notes.parent, notes):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(notes, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as exc:
        raise UsageError(
            f"cannot make {notes}: {exc.strerror}",
            hint="which folders are yours is noted there; let XDG_STATE_HOME name a folder that can be written",
        ) from exc
    try:
        flock(handle, fcntl.LOCK_EX, notes)
        yield
    finally:
        os.close(handle)
