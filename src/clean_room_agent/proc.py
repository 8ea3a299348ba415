"""Runs other processes: bounded output, a timeout, and nothing left running afterwards."""

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from msgspec import Struct

from clean_room_agent.cancellation import raise_if_stopped
from clean_room_agent.child_processes import (
    Capture,
    Pieces,
    absolute_program,
    failed_command,
    not_started_command,
    outside_environment,
)
from clean_room_agent.errors import CommandError

DEFAULT_BOUND = 1_000_000
SUPERVISOR = Path(__file__).with_name("supervisor.py")
CHUNK = 1 << 16
TICK_S, SHORT_TICK_S = 0.05, 0.001  # short: nothing wakes us at the end of a command whose pipes are closed
DRAIN_S = 0.2
KILL_WAIT_S = 15.0


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


class Rlimits(NamedTuple):
    """Limits of the kernel's for a command and all that it starts, on Linux. 0: no limit."""

    file_bytes: int = 0
    processes: int = 0


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
    rlimits: Rlimits | None = None,
    watch: Callable[[int], str] | None = None,
    keep: Sequence[int] = (),
) -> Completed:
    """Run the command, and leave nothing running that it started, daemons included.

    A string is run by `sh`: for the user's own commands only. `env` None means this program's environment; of either,
    the child gets what `outside_environment` leaves. A name without a slash is looked up on that PATH. Processes that
    still run when the command itself has ended have 0.2 s to finish writing, then they are killed. With `contain` False
    only the process group is killed: 12 ms cheaper, for programs that start no daemons; on systems other than Linux
    this is always so. `rlimits` are for what is not contained. `watch` is called with the command's process, often, and ends it by
    saying why. The command inherits the open files in `keep` under their numbers, in
    addition to the three streams.

    Raises:
        CommandError: the program cannot be started; or `check`, and it failed or ran into `timeout` (seconds).
    """
    argv = ("/bin/sh", "-c", command) if isinstance(command, str) else command
    started = time.monotonic()
    out, err = Capture(bound), Capture(bound)
    stdin = subprocess.PIPE if input else subprocess.DEVNULL
    child = _start(argv, cwd, env, stdin, keep, contain=contain, rlimits=rlimits)
    streams = _Streams(child, input, out.feed, err.feed)
    late, exceeded = False, ""
    try:
        for late in _rounds(child, streams, None if timeout is None else started + timeout):
            exceeded = "" if watch is None or late else watch(child.process.pid)
            if exceeded:
                break
    finally:
        returncode = child.end()
        streams.drain()
    if child.refusal is not None:
        raise not_started_command(argv, child.refusal)
    if not child.begun and returncode > 0 and not late:
        raise failed_command(argv, f"{sys.executable} does not start beside it", returncode, b"", err.data())
    if check and (late or returncode != 0):
        how = f"stopped after {timeout} s" if late else f"exit {returncode}"
        raise failed_command(argv, how, returncode, out.data(), err.data())
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
    under its number; its output goes to `out`. The pipe is closed afterwards. Leaving the loop early kills the program's group; with `patience`, Ctrl-C first gives it so many seconds to end.

    Raises:
        CommandError: the program cannot be started, or, after its last piece, it failed.
    """
    pieces, err = Pieces(separator), Capture(DEFAULT_BOUND)
    try:
        child = _start(command, cwd, env, subprocess.DEVNULL, channel[1:] if channel else ())
    except CommandError:
        for end in channel or ():
            os.close(end)
        raise
    streams = _Streams(child, b"", out or pieces.feed, err.feed)
    if channel:
        streams.listen(channel[0], pieces.feed)
        os.close(channel[1])
    try:
        for _ in _rounds(child, streams, None):
            yield from pieces.take()
    finally:
        if patience and not child.ended():
            _interrupt(child, streams, patience)
        returncode = child.end()
        streams.drain()
    yield from pieces.rest()
    if returncode != 0:
        raise failed_command(command, f"exit {returncode}", returncode, b"", err.data())


def show_at_terminal(command: tuple[str, ...], text: bytes, env: Mapping[str, str]) -> None:
    """Run the program at the terminal with `text` as its input. Raises OSError if it cannot be started."""
    subprocess.run(command, input=text, env=outside_environment(env), check=False)


class _Child:
    """A started command, which is killed with its process group, or by its supervisor with all its descendants
    (supervisor.py has the protocol of `control`).
    """

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket | None) -> None:
        self.process = process
        self.control = control
        self._is_supervised = control is not None
        self._told = b""

    def ended(self) -> bool:
        """Whether the command itself has ended."""
        if self._is_supervised:
            self._listen()
            return self.control is None or not {"exit", "errno"}.isdisjoint(self._words())
        if sys.platform != "linux" or self.process.returncode is not None:
            return self.process.poll() is not None
        # Looks without reaping: the group's number stays ours until the group is killed.
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def end(self) -> int:
        """Kill what is left of it, and return the command's exit code; to be called once."""
        if self.control is not None:
            with contextlib.suppress(OSError):
                self.control.shutdown(socket.SHUT_WR)
            self.control.settimeout(KILL_WAIT_S)
            self._listen()
            self._hang_up()
        _kill_group(self.process.pid)
        code = self.process.wait()
        words = self._words()
        if "exit" in words:
            return os.waitstatus_to_exitcode(words["exit"])
        if "start" in words:  # the supervisor died first
            _kill_group(words["start"])
        return code or 1 if self._is_supervised else code

    @property
    def begun(self) -> bool:
        """Whether the supervisor, if there is one, has reported anything, which it does before the command does anything."""
        return not self._is_supervised or bool(self._words())

    @property
    def refusal(self) -> int | None:
        """The error number for which the supervisor could not start the command."""
        return self._words().get("errno")

    def _listen(self) -> None:
        while self.control is not None:
            try:
                chunk = self.control.recv(CHUNK)
            except (BlockingIOError, TimeoutError):
                return
            except ConnectionError:
                chunk = b""
            if not chunk:
                self._hang_up()
            self._told += chunk

    def _hang_up(self) -> None:
        if self.control is not None:
            self.control.close()
            self.control = None

    def _words(self) -> dict[str, int]:
        lines = self._told[: self._told.rfind(b"\n") + 1].decode("ascii").splitlines()
        return {word: int(number) for word, _, number in (line.partition(" ") for line in lines)}


def _start(
    argv: tuple[str, ...],
    cwd: Path,
    env: Mapping[str, str] | None,
    stdin: int,
    keep: Sequence[int],
    *,
    contain: bool = False,
    rlimits: Rlimits | None = None,
) -> _Child:
    """Start the command: under a supervisor if it is to be contained, else in its own process group."""
    environment = outside_environment(os.environ if env is None else env)
    argv = (absolute_program(argv[0], environment), *argv[1:])
    launcher = (sys.executable, "-I", "-S", str(SUPERVISOR))
    if sys.platform != "linux" or not (contain or rlimits):
        return _Child(_open(argv, argv, cwd, environment, stdin, *keep), None)
    if rlimits:
        program = (*launcher, "-", *map(str, rlimits), *argv)
        return _Child(_open(program, argv, cwd, environment, stdin, *keep), None)
    ours, theirs = socket.socketpair()
    with theirs:
        program = (*launcher, str(theirs.fileno()), "0", "0", *argv)
        try:
            process = _open(program, argv, cwd, environment, stdin, theirs.fileno(), *keep)
        except CommandError:
            ours.close()
            raise
    ours.setblocking(False)
    return _Child(process, ours)


def _open(
    program: tuple[str, ...], argv: tuple[str, ...], cwd: Path, env: Mapping[str, str], stdin: int, *keep: int
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            program,
            bufsize=0,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=keep,
        )
    except OSError as exc:
        if exc.filename is not None and os.fspath(exc.filename) == str(cwd) and not cwd.is_dir():
            raise CommandError(f"cannot run {argv[0]}: there is no folder {cwd}", command=argv) from exc
        raise not_started_command(argv, exc.errno or 0) from exc


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _interrupt(child: _Child, streams: "_Streams", patience: float) -> None:
    os.kill(child.process.pid, signal.SIGINT)
    until = time.monotonic() + patience
    while not child.ended() and time.monotonic() < until:
        streams.turn(TICK_S)


def _rounds(child: _Child, streams: "_Streams", limit: float | None) -> Iterator[bool]:
    """One item for each turn of input and output until the command has ended; past `limit`, True as the last one."""
    ended_at: float | None = None
    while True:
        raise_if_stopped()
        now = time.monotonic()
        if ended_at is None and child.ended():
            ended_at = now
        if ended_at is not None and (streams.readers == 0 or now > ended_at + DRAIN_S):
            return
        if ended_at is None and limit is not None and now > limit:
            yield True
            return
        tick = TICK_S if streams.readers or child.control is not None else SHORT_TICK_S
        streams.turn(tick if limit is None else max(0.0, min(tick, limit - now)))
        yield False


class _Streams:
    """The pipes of a child: its output goes to `out` and `err`, and it is sent `feed` as it reads."""

    def __init__(
        self, child: _Child, feed: bytes, out: Callable[[bytes], None], err: Callable[[bytes], None]
    ) -> None:
        process = child.process
        pipes = [pipe for pipe in (process.stdin, process.stdout, process.stderr) if pipe is not None]
        self.pending = memoryview(feed)
        self.readers = 2
        self.selector = selectors.DefaultSelector()
        self.pipes: dict[int, IO[bytes]] = {pipe.fileno(): pipe for pipe in pipes}
        for number, pipe in self.pipes.items():
            os.set_blocking(number, False)
            if pipe is process.stdin:
                self.selector.register(number, selectors.EVENT_WRITE)
            else:
                self.selector.register(number, selectors.EVENT_READ, out if pipe is process.stdout else err)
        if child.control is not None:
            self.selector.register(child.control, selectors.EVENT_READ)

    def listen(self, number: int, sink: Callable[[bytes], None]) -> None:
        """Also read this pipe, and close it at the end."""
        os.set_blocking(number, False)
        self.pipes[number] = os.fdopen(number, "rb", buffering=0)
        self.selector.register(number, selectors.EVENT_READ, sink)
        self.readers += 1

    def turn(self, wait: float) -> int:
        """Wait up to `wait` seconds for a ready pipe, then move a chunk on each; returns how many were moved."""
        moved = 0
        for key, events in self.selector.select(wait):
            if events & selectors.EVENT_WRITE:
                self._write(key.fd)
            elif key.data is not None:
                moved += 1
                self._read(key.fd, key.data)
        return moved

    def drain(self) -> None:
        """Read what ended processes left in the pipes, and close them."""
        until = time.monotonic() + DRAIN_S
        while self.readers and self.turn(0.0) and time.monotonic() < until:
            pass
        self.selector.close()
        for pipe in self.pipes.values():
            pipe.close()

    def _read(self, number: int, sink: Callable[[bytes], None]) -> None:
        chunk = os.read(number, CHUNK)
        if chunk:
            sink(chunk)
            return
        self.selector.unregister(number)
        self.readers -= 1

    def _write(self, number: int) -> None:
        try:
            self.pending = self.pending[os.write(number, self.pending[:CHUNK]) :]
        except BrokenPipeError:
            self.pending = self.pending[:0]
        if not self.pending:
            self.selector.unregister(number)
            self.pipes.pop(number).close()
