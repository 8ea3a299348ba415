"""Every exception that `cra` raises on purpose, with its exit code.

    CraError                      1
    |- UsageError                 2   the command line, a file, or the repository is not fit for the command
    |  |- ConfigError             2   a configuration value is missing, unknown or wrong
    |  |- RepositoryError         2   bare, unborn, mid-merge, not a repository, ...
    |  |- ArtifactError           2   a plan or another artifact file cannot be used
    |  `- SchemaError             2   a database was written by a newer program, or is not one of cra's
    |- ModelError                 3   the model server or its window
    |  |- ServerUnreachable       3   nobody listens, or the connection broke before the first byte
    |  |- ModelNotFound           3   the server does not have the model
    |  |- ServerBusy              3   the queue stayed full
    |  |- ServerFailed            3   the server broke while loading or answering
    |  |- ServerTimeout           3   no answer within the configured deadlines
    |  |- DegenerateOutput        3   the stream ended without an end (repetition guard)
    |  |- TruncatingServer        3   the server cuts over-long prompts instead of refusing them
    |  |- ForwardingServer        3   the server would send prompts on to another machine
    |  |- CallInterrupted       130   Ctrl-C, while a model answered
    |  `- WindowExceeded          3   a prompt does not fit the window of the model that would read it
    |- ReplayMismatch             1   a replayed run asked something that was not recorded
    |- IndexingError              1   a file could not be indexed
    |- GitError                   1   git failed
    |- CommandError               1   another program failed
    |- RecordError                1   the record could not be written or read
    |- BudgetSpent                4   a budget of the run is used up
    `- Interrupted              130   Ctrl-C, at a safe point

Expected outcomes (no edit found, tests fail, an unreadable answer) are values, not exceptions.
"""

import errno
from collections.abc import Mapping
from typing import ClassVar

SYSTEM_FAULTS: Mapping[int, tuple[str, str]] = {
    errno.ENOSPC: ("the disk is full", "free some space, then run the command again"),
    errno.EDQUOT: ("your quota of disk space is used up", "free some space, then run the command again"),
    errno.EMFILE: ("too many files are open", "allow more with `ulimit -n 1024`, then run the command again"),
    errno.ENFILE: ("too many files are open on this machine", "wait, or close other programs"),
    errno.EROFS: ("the file system is read-only", "let it be writable, or name another place"),
    errno.EACCES: (
        "this is not allowed",
        "you must own what is named there, or be allowed to read and write it",
    ),
    errno.EPERM: (
        "this is not allowed",
        "you must own what is named there, or be allowed to read and write it",
    ),
    errno.EIO: (
        "the disk failed",
        "look into the system's log; the record is safe where it was synced before",
    ),
    errno.ESTALE: ("the file server has lost a file that was open", "run the command again"),
    errno.ENOLCK: (
        "the file system gives no locks",
        "a network file system must be mounted with locks (NFS: without `nolock`, with a lock daemon); or work on a local disk",
    ),
    errno.ENAMETOOLONG: ("a name is too long for the file system", "choose a shorter one"),
    errno.ELOOP: ("links lead in a circle, or where none may be", "remove the link"),
    errno.ENOTDIR: ("a file is where a folder should be", "move it away"),
    errno.EISDIR: ("a folder is where a file should be", "move it away"),
    errno.EEXIST: ("something is where something else should be", "move it away"),
    errno.ENOMEM: ("the machine is short of memory", "close other programs, then run the command again"),
    errno.EAGAIN: (
        "the machine is short of processes or memory",
        "close other programs, or allow more with `ulimit -u`, then run the command again",
    ),
    errno.ENOTSUP: ("the file system does not support this", "work on a local disk"),
    errno.ETXTBSY: ("a program is being written", "run the command again"),
}
"""By error number: what is wrong, and what to do."""


class CraError(Exception):
    """Something that the user has to know: a message, and a hint that says what to do next."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(CraError):
    """The command line, one of its files, or the repository is not suitable for the command."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration value is missing, unknown or invalid; the message names the key and the file."""


class RepositoryError(UsageError):
    """The repository's state does not allow the command; the hint names the remedy."""


class ArtifactError(UsageError):
    """A plan or another artifact is not usable; the message names the field."""


class SchemaError(UsageError):
    """A database file is newer than this program, or does not belong to it."""


class ModelError(CraError):
    """A problem with the model server or a model's window."""

    exit_code = 3


class ServerUnreachable(ModelError):
    """Nothing listens at the base URL, or the connection broke before the answer's first byte."""


class ModelNotFound(ModelError):
    """The server does not have the named model."""


class ServerBusy(ModelError):
    """The server's queue stayed full through all retries."""


class ServerFailed(ModelError):
    """The server reported an error, or broke off, while it loaded the model or answered."""


class ServerTimeout(ModelError):
    """The server did not answer, or fell silent, beyond the configured time."""


class DegenerateOutput(ModelError):
    """The stream ended cleanly but without its last line: the server's guard against repetition."""


class TruncatingServer(ModelError):
    """The server truncates long prompts without saying so."""


class ForwardingServer(ModelError):
    """The server forwards a model's prompts to another machine, which is not allowed."""


class CallInterrupted(ModelError):
    """The user stopped the program while a model answered; what had come by then is recorded."""

    exit_code = 130


class WindowExceeded(ModelError):
    """A prompt does not fit the window of the model that would read it."""


class ReplayMismatch(CraError):
    """A replayed run differs from its recording; the message says where it first differs, and so do the fields, for
    programs.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        call: str = "",
        part: str = "",
        line: int = 0,
        recorded: str | None = None,
        now: str | None = None,
    ) -> None:
        """`call`: the call that differs; `part`: prompt or system text; `line`: the first line that differs, 1-based,
        with its recorded and its new text, None if it does not exist.
        """
        super().__init__(message, hint=hint)
        self.call = call
        self.part = part
        self.line = line
        self.recorded = recorded
        self.now = now


class IndexingError(CraError):
    """A file could not be read, decoded or parsed; the message names it."""


class GitError(CraError):
    """A git command failed; the message contains git's own."""


class CommandError(CraError):
    """A program failed; `command`, `returncode`, `stdout` and `stderr` say how."""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        command: tuple[str, ...] = (),
        returncode: int | None = None,
        stdout: bytes = b"",
        stderr: bytes = b"",
    ) -> None:
        super().__init__(message, hint=hint)
        self.command = command
        self.returncode = returncode
        self.stdout = stdout
        self.stderr = stderr


class RecordError(CraError):
    """The record (raw or session database) could not be written or read."""


class BudgetSpent(CraError):
    """A budget of the run (calls, tokens, minutes) is used up."""

    exit_code = 4


class Interrupted(CraError):
    """The user asked to stop; the run is at a safe point and can be resumed."""

    exit_code = 130


def remedy_for(error: OSError, default: str = "") -> str:
    """What to do about an error of the system; `default` if nothing particular is known."""
    return SYSTEM_FAULTS.get(error.errno or 0, ("", default))[1]


def system_fault(error: Exception) -> CraError | None:
    """The error as the user should see it, if it says what the machine or the file system refused."""
    if isinstance(error, MemoryError):
        wrong, remedy = SYSTEM_FAULTS[errno.ENOMEM]
        return CraError(wrong, hint=remedy)
    if not isinstance(error, OSError) or error.errno is None or error.errno not in SYSTEM_FAULTS:
        return None
    wrong, remedy = SYSTEM_FAULTS[error.errno]
    named = [str(name) for name in (error.filename, error.filename2) if name is not None]
    return CraError(": ".join([wrong, error.strerror or "", *named]), hint=remedy)
