"""Runs other processes: bounded output, a timeout, and nothing left running afterwards.

A child gets only absolute folders to look for programs and libraries in. An empty or relative entry of PATH, or of the
loader's folders (`/usr/local/cuda/lib64:` has one), means the folder in which the child runs: that of a repository, or
one that code under test has filled.
"""

import contextlib
import errno
import fcntl
import functools
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from msgspec import Struct

from clean_room_agent.cancellation import raise_if_stopped
from clean_room_agent.errors import SYSTEM_FAULTS, CommandError

DEFAULT_BOUND = 1_000_000
SUPERVISOR = Path(__file__).with_name("supervisor.py")
CHUNK = 1 << 16
TICK_S, SHORT_TICK_S = 0.05, 0.001  # short: nothing wakes us at the end of a command whose pipes are closed
DRAIN_S = 0.2
KILL_WAIT_S = 15.0
LOADER = ("LD_", "DYLD_")
"""Prefixes of the variables that tell the loader what to load."""
SHELL_STARTS = frozenset({"BASH_ENV", "ENV"})
"""Variables with files that a shell reads before its command."""
SLACK = 1 << 16
"""Bytes by which the tail may grow before it is trimmed."""
SHOWN = 500
"""Characters of its last output in a message."""


class Completed(Struct, frozen=True, kw_only=True):
    """How a command ended. `returncode` is negative for the signal that killed it.

    Of a stream longer than the limit, its beginning and its end are kept; `*_cut` bytes were left out between.
    """

    command: tuple[str, ...]
    returncode: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    stdout_cut: int
    stderr_cut: int
    duration_s: float
    exceeded: str = ""
    """The limit for which it was killed, as the watch called it; "" for none."""

    def marked_streams(self) -> tuple[bytes, bytes]:
        """(stdout, stderr), each with a line that marks where bytes were left out."""
        return _mark_cut(self.stdout, self.stdout_cut), _mark_cut(self.stderr, self.stderr_cut)


def run(
    command: tuple[str, ...] | str,
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    timeout: float | None,
    input: bytes = b"",  # noqa: A002 - the word that subprocess has taught everybody
    check: bool = True,
    bound: int = DEFAULT_BOUND,
    contain: bool = True,
    rlimits: tuple[int, int] = (0, 0),
    watch: Callable[[int], str] | None = None,
    keep: Sequence[int] = (),
) -> Completed:
    """Run the command, and leave nothing running that it started, daemons included.

    A string is run by `sh`: for the user's own commands only. `env` None means this program's environment; of either,
    the child gets what `outside_environment` leaves. A name without a slash is looked up on that PATH. Processes that
    still run when the command itself has ended have 0.2 s to finish writing, then they are killed. With `contain` False
    only the process group is killed: 12 ms cheaper, for programs that start no daemons; on systems other than Linux
    this is always so. `rlimits` (bytes of each file, processes; 0: no limit) are for what is not contained. `watch` is
    called with the command's process, often, and ends it by saying why. The command inherits the open files in `keep`
    under their numbers.

    Raises:
        CommandError: the program cannot be started; or `check`, and it failed or ran into `timeout`.
    """
    argv = ("/bin/sh", "-c", command) if isinstance(command, str) else command
    started = time.monotonic()
    out, err = Capture(bound), Capture(bound)
    with (
        file_in_memory(input, is_sealed=True)
        if input
        else contextlib.nullcontext(subprocess.DEVNULL) as stdin
    ):
        process, control = _start_process(argv, cwd, env, stdin, keep, contain=contain, rlimits=rlimits)
    child = _Child(process, control, out.feed, err.feed)
    late, exceeded = False, ""
    try:
        for late in child.turns(None if timeout is None else started + timeout):
            exceeded = "" if watch is None or late else watch(process.pid)
            if exceeded:
                break
    finally:
        returncode = child.end()
    if not child.has_begun and returncode > 0 and not late:
        raise _failed_command(argv, f"{sys.executable} does not start beside it", returncode, b"", err.data())
    if check and (late or returncode != 0):
        how = f"stopped after {timeout} s" if late else f"exit {returncode}"
        raise _failed_command(argv, how, returncode, out.data(), err.data())
    return Completed(
        command=argv,
        returncode=returncode,
        stdout=out.data(),
        stderr=err.data(),
        timed_out=late,
        stdout_cut=out.cut(),
        stderr_cut=err.cut(),
        duration_s=time.monotonic() - started,
        exceeded=exceeded,
    )


def stream(
    command: tuple[str, ...],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    separator: bytes = b"\n",
    patience: float = 0.0,
    channel: tuple[int, int] | None = None,
    out: Callable[[bytes], None] | None = None,
) -> Generator[bytes, None, None]:
    """The output of the program, split at `separator`, as it arrives; an empty last piece is left out.

    With `channel`, a pipe (read end, write end), the pieces are what the program writes to the write end, which it inherits
    under its number; its output goes to `out`. The pipe is closed afterwards. Leaving the loop early kills the program's
    group; with `patience`, Ctrl-C first gives it so many seconds to end.

    Raises:
        CommandError: the program cannot be started, or, after its last piece, it failed.
    """
    chunks: list[bytes] = []
    err = Capture(DEFAULT_BOUND)
    try:
        process, _ = _start_process(command, cwd, env, subprocess.DEVNULL, channel[1:] if channel else ())
    except CommandError:
        for end in channel or ():
            os.close(end)
        raise
    child = _Child(process, None, out or chunks.append, err.feed)
    if channel:
        child.read_from(os.fdopen(channel[0], "rb", buffering=0), chunks.append)
        os.close(channel[1])
    rest = b""
    try:
        for _ in child.turns(None):
            if chunks:
                *whole, rest = b"".join((rest, *chunks)).split(separator)
                chunks.clear()
                yield from whole
    finally:
        if patience:
            child.interrupt(patience)
        returncode = child.end()
    *whole, rest = b"".join((rest, *chunks)).split(separator)
    yield from (*whole, *filter(None, (rest,)))
    if returncode != 0:
        raise _failed_command(command, f"exit {returncode}", returncode, b"", err.data())


def show_at_terminal(command: tuple[str, ...], text: bytes, env: Mapping[str, str]) -> None:
    """Run the program at the terminal with `text` as its input. Raises OSError if it cannot be started."""
    subprocess.run(command, input=text, env=outside_environment(env), check=False)


class _Child:
    """A started command with its pipes. It is killed with its process group, or by its supervisor with all its descendants:
    `supervisor.py` has the protocol of `control`.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        control: socket.socket | None,
        out: Callable[[bytes], None],
        err: Callable[[bytes], None],
    ) -> None:
        self.process = process
        self._control = control
        self._reported = bytearray()
        """What the supervisor has said."""
        self._selector = selectors.DefaultSelector()
        self._pipes: list[IO[bytes] | socket.socket] = []
        for pipe, sink in ((process.stdout, out), (process.stderr, err), (control, self._reported.extend)):
            if pipe is not None:
                self.read_from(pipe, sink)

    def read_from(self, pipe: IO[bytes] | socket.socket, sink: Callable[[bytes], None]) -> None:
        """Pass what comes from the pipe to `sink`, and close it at the end."""
        os.set_blocking(pipe.fileno(), False)
        self._pipes.append(pipe)
        self._selector.register(pipe, selectors.EVENT_READ, sink)

    def turns(self, limit: float | None) -> Iterator[bool]:
        """One item for each turn of output until the command has ended; past `limit`, True as the last one."""
        ended_at: float | None = None
        while True:
            raise_if_stopped()
            now = time.monotonic()
            if ended_at is None and self._has_ended():
                ended_at = now
            if ended_at is not None and (not self._has_output() or now > ended_at + DRAIN_S):
                return
            if ended_at is None and limit is not None and now > limit:
                yield True
                return
            tick = TICK_S if self._selector.get_map() else SHORT_TICK_S
            self._read_ready_pipes(tick if limit is None else max(0.0, min(tick, limit - now)))
            yield False

    def interrupt(self, patience: float) -> None:
        """Send Ctrl-C unless it has ended, and wait up to `patience` seconds for the end."""
        until = time.monotonic() + patience
        if not self._has_ended():
            os.kill(self.process.pid, signal.SIGINT)
        while not self._has_ended() and time.monotonic() < until:
            self._read_ready_pipes(TICK_S)

    def end(self) -> int:
        """Kill what is left of it, read what it left in its pipes, and return the command's exit code; to be called once."""
        if self._control is not None:
            until = time.monotonic() + KILL_WAIT_S
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_WR)
            while self._is_open(self._control) and time.monotonic() < until:
                self._read_ready_pipes(TICK_S)
        _kill_group(self.process.pid)
        code = self.process.wait()
        reports = self._supervisor_reports()
        if "exit" in reports:
            code = os.waitstatus_to_exitcode(reports["exit"])
        elif self._control is not None:
            if "start" in reports:  # the command has killed its supervisor
                _kill_group(reports["start"])
            code = code or 1
        until = time.monotonic() + DRAIN_S
        while self._has_output() and self._read_ready_pipes(0.0) and time.monotonic() < until:
            pass
        self._selector.close()
        for pipe in self._pipes:
            pipe.close()
        return code

    @property
    def has_begun(self) -> bool:
        """Whether the supervisor, if there is one, has reported anything, as it does before the command does anything."""
        return self._control is None or bool(self._supervisor_reports())

    def _has_ended(self) -> bool:
        """Whether the command itself has ended."""
        if self._control is not None:
            return not self._is_open(self._control) or "exit" in self._supervisor_reports()
        if sys.platform != "linux" or self.process.returncode is not None:
            return self.process.poll() is not None
        # Looks without reaping: the group's number stays ours until the group is killed.
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _supervisor_reports(self) -> dict[str, int]:
        lines = self._reported[: self._reported.rfind(b"\n") + 1].decode("ascii").splitlines()
        return {word: int(number) for word, _, number in (line.partition(" ") for line in lines)}

    def _is_open(self, pipe: IO[bytes] | socket.socket) -> bool:
        return pipe in self._selector.get_map()

    def _has_output(self) -> bool:
        return any(self._is_open(pipe) for pipe in self._pipes if pipe is not self._control)

    def _read_ready_pipes(self, wait: float) -> int:
        """Wait up to `wait` seconds for a ready pipe, then move a chunk from each; returns how many were ready."""
        if not self._selector.get_map():
            time.sleep(wait)
            return 0
        ready = self._selector.select(wait)
        for key, _ in ready:
            try:
                chunk = os.read(key.fd, CHUNK)
            except ConnectionError:
                chunk = b""
            if chunk:
                key.data(chunk)
            else:
                self._selector.unregister(key.fileobj)
        return len(ready)


def _start_process(
    argv: tuple[str, ...],
    cwd: Path,
    env: Mapping[str, str] | None,
    stdin: int,
    keep: Sequence[int],
    *,
    contain: bool = False,
    rlimits: tuple[int, int] = (0, 0),
) -> tuple[subprocess.Popen[bytes], socket.socket | None]:
    """The command's process in a group of its own and, where it is contained, our end of the supervisor's socket."""
    environment = outside_environment(os.environ if env is None else env)
    argv = (absolute_program(argv[0], environment), *argv[1:])
    control, theirs, program = None, None, argv
    if sys.platform == "linux" and (contain or any(rlimits)):
        if not os.access(cwd / argv[0], os.X_OK) and cwd.is_dir():
            raise _not_started(argv, errno.EACCES if (cwd / argv[0]).exists() else errno.ENOENT)
        if not any(rlimits):
            control, theirs = socket.socketpair()
            keep = (*keep, theirs.fileno())
        place = "-" if theirs is None else str(theirs.fileno())
        program = (sys.executable, "-I", "-S", str(SUPERVISOR), place, *map(str, rlimits), *argv)
    try:
        process = subprocess.Popen(
            program,
            bufsize=0,
            cwd=cwd,
            env=environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=keep,
        )
    except OSError as exc:
        if control is not None:
            control.close()
        if exc.filename is not None and os.fspath(exc.filename) == str(cwd) and not cwd.is_dir():
            raise CommandError(f"cannot run {argv[0]}: there is no folder {cwd}", command=argv) from exc
        raise _not_started(argv, exc.errno or 0) from exc
    finally:
        if theirs is not None:
            theirs.close()
    return process, control


@contextlib.contextmanager
def file_in_memory(content: bytes, *, is_sealed: bool = False) -> Iterator[int]:
    """An open file with the content, at its beginning. Who gets a sealed one cannot let it grow: such memory is counted for no
    process.
    """
    if sys.platform == "linux":
        handle = os.memfd_create("cra", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        import tempfile  # noqa: PLC0415 - as below, for `shutil`

        handle = os.dup(tempfile.TemporaryFile().fileno())  # noqa: SIM115
    with os.fdopen(handle, "w+b") as file:
        file.write(content)
        file.seek(0)
        if is_sealed and sys.platform == "linux":
            fcntl.fcntl(
                handle, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_WRITE
            )
        yield handle


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def outside_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a child outside the sandbox."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith(LOADER) and name not in SHELL_STARTS
    }
    if "PATH" in kept:
        kept["PATH"] = absolute_entries(kept["PATH"])
    return kept


def inherited_environment(*, without: str) -> dict[str, str]:
    """This program's environment, without the variables whose names begin with `without`."""
    return {name: value for name, value in sorted(os.environ.items()) if not name.startswith(without)}


def absolute_entries(path: str) -> str:
    """The absolute entries of a list of folders."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if entry.startswith("/"))


def absolute_program(name: str, environment: Mapping[str, str]) -> str:
    """The absolute path of the program, looked up once; `name` itself if it is a path, or there is no such program."""
    if "/" in name:
        return name
    try:
        return _find_program(name, absolute_entries(environment.get("PATH", os.defpath)))
    except FileNotFoundError:
        return name


@functools.cache
def _find_program(name: str, path: str) -> str:
    # As `shutil.which`; but that module loads three compression libraries, and every command begins with a git.
    for folder in path.split(os.pathsep):
        place = os.path.join(folder, name)  # noqa: PTH118 - a text is wanted
        if os.path.isfile(place) and os.access(place, os.X_OK):  # noqa: PTH113
            return place
    raise FileNotFoundError(name)


class Capture:
    """The first and the last half of `bound` bytes of a stream of any length."""

    def __init__(self, bound: int) -> None:
        self.half = max(1, bound // 2)
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk of the stream."""
        self.total += len(chunk)
        space = self.half - len(self.head)
        if space > 0:
            self.head += chunk[:space]
            chunk = chunk[space:]
        self.tail += chunk
        if len(self.tail) > 2 * self.half + SLACK:
            del self.tail[: -self.half]

    def data(self) -> bytes:
        """The first and the last part, joined."""
        return bytes(self.head + self.tail[-self.half :])

    def cut(self) -> int:
        """How many bytes were left out between them."""
        return self.total - len(self.data())


def _mark_cut(data: bytes, cut: int) -> bytes:
    middle = len(data) // 2
    return data[:middle] + b"\n[... %d bytes left out ...]\n" % cut + data[middle:] if cut else data


def _not_started(argv: tuple[str, ...], number: int) -> CommandError:
    short = number in {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}
    hint = SYSTEM_FAULTS[number][1] if short else f"install {argv[0]}, or put it on PATH"
    return CommandError(f"cannot start {argv[0]}: {os.strerror(number)}", hint=hint, command=argv)


def _failed_command(
    argv: tuple[str, ...], how: str, returncode: int, stdout: bytes, stderr: bytes
) -> CommandError:
    """The error for a program that failed; `how` says in which way."""
    words = stderr.decode("utf-8", "replace").strip()[-SHOWN:]
    return CommandError(
        f"{' '.join(argv)[:SHOWN]}: {how}" + (f": {words}" if words else ""),
        command=argv,
        returncode=returncode,
        stdout=stdout,
        stderr=stderr,
    )
