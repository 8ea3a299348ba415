"""Starts one command, under limits of the kernel's, and exits after everything that it started: run as a script by `proc`.

    supervisor.py CONTROL FILE_BYTES PROCESSES COMMAND...

The limits (0 for none) hold for the command and all that it starts. With CONTROL `-`, this process then becomes the
command, which must end its own processes, as bubblewrap does. Otherwise CONTROL is the number of a socket, and this
process stays as the command's parent. It declares itself subreaper: descendants whose own parents die become its
children, even from a separate session, so "it has no child left" means "the command's whole tree is gone". A separate
process is used because the alternative, making the whole program a subreaper, could not tell one command's orphans from
another's, and because this one also notices when the program itself is killed.

On the socket it tells `start P` with the command's process, and `exit S` with the wait status once the command ended. End
of file from the other side means: kill everything and leave. Only light modules are imported, and none of the package:
this start-up is paid for every command.
"""

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
KILL_SECONDS = 10.0
PAUSE_SECONDS = 0.002
PAGE = os.sysconf("SC_PAGE_SIZE")


def main(control: str, file_bytes: int, processes: int, command: list[bytes]) -> None:
    """Run the command."""
    set_limits(file_bytes, processes)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    if control == "-":
        become(command)
    supervise(int(control), command)


def set_limits(file_bytes: int, processes: int) -> None:
    """Set resource limits for this process and its children."""
    if not file_bytes and not processes:
        return
    limits = {resource.RLIMIT_CORE: 0}
    if file_bytes:
        limits[resource.RLIMIT_FSIZE] = file_bytes
    if processes and os.getuid() != 0:  # root is not counted at all; whoever set the limit looks
        # The kernel counts all that the user runs.
        others = sum(threads for _, threads, _ in processes_of(os.getuid()).values())
        limits[resource.RLIMIT_NPROC] = others + processes
    for kind, value in limits.items():
        _, hard = resource.getrlimit(kind)
        lower = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (lower, lower))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "wb") as score:  # noqa: PTH123
        score.write(b"1000")  # where memory runs out, not the user's programs but this goes first


def become(command: list[bytes]) -> None:
    """Become the command, in the environment that this process was given."""
    # Python may have changed its own environment (LC_CTYPE), but not what the kernel shows of it.
    with open("/proc/self/environ", "rb") as given:  # noqa: PTH123
        environment = dict(pair.partition(b"=")[::2] for pair in given.read().split(b"\0") if pair)
    os.execvpe(command[0], command, environment)  # noqa: S606 - proc.py, the door, gave it


def supervise(control: int, command: list[bytes]) -> None:
    """Run the command, report its status, and leave none of its descendants."""
    os.set_inheritable(control, False)
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no subreaper")
    wake, wake_write = os.pipe()
    for end in (wake, wake_write):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    child = os.fork()
    if child == 0:
        os.setsid()
        # From here: a command may kill this process's parent, and its process id must be known then.
        tell(control, f"start {os.getpid()}\n")
        become(command)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # so that their readers see end of file when the command closes them
        os.dup2(null, stream)
    while control not in select.select((control, wake), (), ())[0]:
        with contextlib.suppress(BlockingIOError):
            os.read(wake, 4096)
        reap(control, child)
    give_up = time.monotonic() + KILL_SECONDS
    while reap(control, child) and time.monotonic() < give_up:
        for pid in below(os.getpid(), processes_of(None)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_SECONDS)


def reap(control: int, child: int) -> bool:
    """Reap all zombies, and report the command's status if it is among them; returns whether any child remains."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return True
            if pid == child:
                tell(control, f"exit {status}\n")
    return False


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
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:  # noqa: PTH123
                if user is None or os.fstat(stat.fileno()).st_uid == user:
                    words = stat.read().rpartition(b")")[2].split()
                    known[int(name)] = int(words[1]), int(words[17]), int(words[21]) * PAGE
    return known


def tell(control: int, line: str) -> None:
    """Send a line to the other side, if it still exists."""
    with contextlib.suppress(OSError):
        os.write(control, line.encode())


if __name__ == "__main__":
    with open("/proc/self/cmdline", "rb") as words:  # noqa: PTH123 - as bytes, whatever the encoding
        given = words.read().split(b"\0")[-len(sys.argv[4:]) - 1 : -1]
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), given)
