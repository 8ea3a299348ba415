"""The parent process of one command: started as a script by `proc`, it exits after everything the command started.

It declares itself subreaper: descendants whose own parents die become its children, even from a separate session, so
"it has no child left" means "the command's whole tree is gone". A separate process is used because the alternative,
making the whole program a subreaper, could not tell one command's orphans from another's, and because this one also
notices when the program itself is killed.

On the socket whose number is its argument it reads the size of what follows in decimal and a line break, then,
joined by NUL: the bounds (bytes of memory, processes, bytes of a file; 0 for none), the number of arguments, the
arguments, and `NAME=value` for the environment. It answers `start P` with the command's process, `errno N` when the
program could not be started, `memory N` or `processes N` when it kills the tree for holding that many bytes or
processes, and `exit S` with the wait status once the command ended. End of file from the other side means: kill
everything and leave.

Only light modules are imported, and none of the package: this start-up is paid for every command.
"""

import _signal as signal  # type: ignore[import-not-found]  # `signal` makes enumerations of it: a third of this start-up
import ctypes
import os
import resource
import select
import sys
import time
from types import TracebackType

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` is not light, either
    from typing import Self

PR_SET_CHILD_SUBREAPER = 36
KILL_SECONDS = 10.0
PAUSE_SECONDS = 0.002
LOOK_SECONDS = 0.1
"""Seconds between two measurements of the command's memory; longer if measuring is slow."""
LOOK_SHARE = 20
TICK_SECONDS = 0.01
"""Seconds between two looks at how many processes the machine has, where their number is bounded."""
STARTED_ELSEWHERE = 200
"""Processes that the rest of the machine may start in a second without being taken for the command's."""
AT_ONCE_ELSEWHERE = 1024
"""Those that it may start at any moment besides: another run's tests, a build with many jobs."""
FIRST_PID = 300
"""Where the numbers of processes begin again."""
PAGE = os.sysconf("SC_PAGE_SIZE")


class Suppressed:
    """A block that ends without an error at the first exception of these kinds, as `contextlib.suppress` does, which takes
    another part of the start-up.
    """

    def __init__(self, *kinds: type[Exception]) -> None:
        self._kinds = kinds

    def __enter__(self) -> "Self":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return kind is not None and issubclass(kind, self._kinds)


class Burst:
    """How many processes and threads the command may have had at a time between two counts of its own, which take too long to
    be made often: from the number that the machine has, and the number that it has started.

    A process that the command starts adds to both, even if it is gone at the next look. The rest of the machine is taken to
    have as many as at the last count, and to have started at most `AT_ONCE_ELSEWHERE`, and `STARTED_ELSEWHERE` in a second since.
    """

    def __init__(self) -> None:
        self.now = 0
        """How many the command has, if the rest of the machine has as many as before."""
        self._total, self._newest = machine_count()
        self._others = self._total
        self._counted_at = time.monotonic()

    def set_own(self, own: int) -> None:
        """`own` were just counted."""
        self._others, self.now = self._total - own, own
        self._counted_at = time.monotonic()

    def most(self) -> int:
        """How many the command has had at a time, at least, since this was asked before: those it has, or those it had and
        those that have started.
        """
        before, newest = self.now, self._newest
        self._total, self._newest = machine_count()
        self.now = self._total - self._others
        started = self._newest - newest
        if started < 0:
            with open("/proc/sys/kernel/pid_max", "rb") as most:  # noqa: PTH123
                started += int(most.read()) - FIRST_PID
        elsewhere = AT_ONCE_ELSEWHERE + int(STARTED_ELSEWHERE * (time.monotonic() - self._counted_at))
        return max(self.now, before + started) - elsewhere


def machine_count() -> tuple[int, int]:
    """The machine's number of processes and threads, and the number of the newest."""
    with open("/proc/loadavg", "rb") as load:  # noqa: PTH123
        *_, counts, newest = load.read().split()
    return int(counts.partition(b"/")[2]), int(newest)


def main(control: int) -> None:
    """Run the command given on `control`, report its status, and leave none of its descendants."""
    os.set_inheritable(control, False)
    bounds, arguments, environment = read_command(control)
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        tell(control, f"errno {ctypes.get_errno()}\n")
        return
    wake, wake_write = os.pipe()
    for end in (wake, wake_write):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    told, telling = os.pipe()
    burst = Burst() if bounds[1] else None
    command = os.fork()
    if command == 0:
        os.close(telling)
        become(control, told, bounds, arguments, environment)
    tell(control, f"start {command}\n")
    os.write(telling, b"\n")
    os.close(telling)
    os.close(told)
    let_go_of_streams()
    poller = select.poll()
    poller.register(control, select.POLLIN)
    poller.register(wake, select.POLLIN)
    pause = LOOK_SECONDS
    next_look = time.monotonic() + pause
    wait = 1000 * (TICK_SECONDS if burst else pause) if any(bounds[:2]) else None
    while control not in {descriptor for descriptor, _ in poller.poll(wait)}:
        with Suppressed(BlockingIOError):
            os.read(wake, 4096)
        # Before the end is told: what a short command started counts, too.
        most = burst.most() if burst else 0
        started = time.monotonic()
        many = burst is not None and max(burst.now, most) > bounds[1]
        if many or (any(bounds[:2]) and started >= next_look):
            excess = find_excess(bounds, burst)
            if burst and not excess and most > bounds[1]:
                excess = f"processes {most}"
            if excess:
                tell(control, f"{excess}\n")
                break
            pause = max(LOOK_SECONDS, LOOK_SHARE * (time.monotonic() - started))
            next_look = time.monotonic() + pause
        reap(control, command)
    kill_all(control, command)


def read_command(control: int) -> tuple[list[int], list[bytes], dict[bytes, bytes]]:
    """The limits, the arguments and the environment of the command; exits if the other side dies before it has sent
    them.
    """
    size = b""
    while not size.endswith(b"\n"):
        digit = os.read(control, 1)
        if not digit:
            sys.exit(0)
        size += digit
    left = int(size)
    chunks = []
    while left:
        chunk = os.read(control, min(left, 1 << 16))
        if not chunk:
            sys.exit(0)
        chunks.append(chunk)
        left -= len(chunk)
    memory, processes, file_size, count, *fields = b"".join(chunks).split(b"\0")
    bounds = [int(memory), int(processes), int(file_size)]
    arguments, variables = fields[: int(count)], fields[int(count) :]
    pairs = (variable.partition(b"=") for variable in variables)
    return bounds, arguments, {name: value for name, _, value in pairs}


def become(
    control: int, told: int, bounds: list[int], arguments: list[bytes], environment: dict[bytes, bytes]
) -> None:
    """Become the command, in a separate session; never returns.

    First it is reported on `control`: a command may kill this process's parent, and its process id must be known then.
    """
    try:
        os.setsid()
        if not os.read(told, 1):
            os._exit(127)
        hold_to(bounds)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(arguments[0], arguments, environment)  # noqa: S606 - proc.py, the door, gave it
    except OSError as exc:
        tell(control, f"errno {exc.errno}\n")
    finally:
        os._exit(127)


def hold_to(bounds: list[int]) -> None:
    """Set resource limits for this process and its children."""
    _, processes, file_size = bounds
    if not any(bounds):
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if file_size:
        lower(resource.RLIMIT_FSIZE, file_size)
    if processes and os.getuid() != 0:
        # The kernel counts all that the user runs; root is not counted at all, but looked at.
        others = sum(threads for _, threads, _ in processes_of(os.getuid()).values())
        lower(resource.RLIMIT_NPROC, others + processes)
    with Suppressed(OSError), open("/proc/self/oom_score_adj", "wb") as score:  # noqa: PTH123
        score.write(b"1000")  # where memory runs out, not the user's programs but this goes first


def lower(kind: int, value: int) -> None:
    """Lower the limit `kind` to at most `value`."""
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def find_excess(bounds: list[int], burst: Burst | None = None) -> str:
    """The limit that the descendants exceed, and their value, in words; "" for none. `burst` is told their number."""
    memory, processes, _ = bounds
    known = processes_of(None)
    tree = below(os.getpid(), known)
    # One that has ended and was not waited for has no thread, and still takes a place.
    count = sum(known[pid][1] or 1 for pid in tree)
    if burst:
        burst.set_own(count)
    if processes and count > processes:
        return f"processes {count}"
    # Pages that several share are counted once for each, so a sum within the bound is surely within it.
    if memory and sum(known[pid][2] for pid in tree) > memory:
        held = sum(held_by(pid, known[pid][2]) for pid in tree)
        if held > memory:
            return f"memory {held}"
    return ""


def held_by(pid: int, resident: int) -> int:
    """Bytes of the process, with shared pages divided among the processes that share them; `resident` if that is
    unavailable.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as rollup:  # noqa: PTH123
            for line in rollup:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    return resident


def let_go_of_streams() -> None:
    """Close the command's streams in this process, so that their readers see end of file when the command closes them."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


def reap(control: int, command: int) -> bool:
    """Reap all zombies, and report the command's status if it is among them; returns whether any child remains."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        if pid == command:
            tell(control, f"exit {status}\n")


def kill_all(control: int, command: int) -> None:
    """Kill all descendants, and wait for up to `KILL_SECONDS` until they are gone."""
    give_up = time.monotonic() + KILL_SECONDS
    while reap(control, command) and time.monotonic() < give_up:
        for pid in descendants(os.getpid()):
            with Suppressed(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_SECONDS)


def descendants(root: int) -> list[int]:
    """The processes below `root`, parents before their children."""
    return below(root, processes_of(None))


def below(root: int, known: dict[int, tuple[int, int, int]]) -> list[int]:
    """Those of the processes that descend from `root`, parents before their children."""
    children: dict[int, list[int]] = {}
    for pid, (parent, _, _) in known.items():
        children.setdefault(parent, []).append(pid)
    found = list(children.get(root, []))
    for pid in found:
        found.extend(children.get(pid, []))
    return found


def processes_of(user: int | None) -> dict[int, tuple[int, int, int]]:
    """The parent, the number of threads and the resident bytes of each process of `user`; of all for None."""
    known = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would double the start-up time
        if name.isdigit():
            with Suppressed(OSError), open(f"/proc/{name}/stat", "rb") as stat:  # noqa: PTH123
                if user is None or os.fstat(stat.fileno()).st_uid == user:
                    words = stat.read().rpartition(b")")[2].split()
                    known[int(name)] = int(words[1]), int(words[17]), int(words[21]) * PAGE
    return known


def tell(control: int, line: str) -> None:
    """Send a line to the other side, if it still exists."""
    with Suppressed(OSError):
        os.write(control, line.encode())


if __name__ == "__main__":
    main(int(sys.argv[1]))
