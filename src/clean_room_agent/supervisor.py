"""The parent of one command. `proc` starts it as a script; it leaves last, after all that the command left behind.

It declares itself subreaper: descendants whose own parents die come back to it, even from a session of their
own, so "it has no child left" means "the command's whole tree is gone". A process of its own is used because
the alternative, making the whole program a subreaper, could not tell one command's orphans from another's, and
because this one also notices when the program itself is killed.

On the socket whose number is its argument it reads the size of what follows in decimal and a line break, then,
joined by NUL: the number of arguments, the arguments, and `NAME=value` for the environment. It answers
`start P` with the command's process, `errno N` when the program could not be started, and `exit S` with the
wait status once it ended. End of file
from the other side means: kill everything and leave.

Only light modules are imported, and none of the package: this start-up is paid for every command.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
KILL_SECONDS = 10.0
PAUSE_SECONDS = 0.002


def main(control: int) -> None:
    """The command given on `control` has run, its status was told, and none of its descendants is left."""
    os.set_inheritable(control, False)
    arguments, environment = read_command(control)
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        tell(control, f"errno {ctypes.get_errno()}\n")
        return
    wake, wake_write = os.pipe()
    for end in (wake, wake_write):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    command = os.fork()
    if command == 0:
        become(control, arguments, environment)
    tell(control, f"start {command}\n")
    let_go_of_streams()
    poller = select.poll()
    poller.register(control, select.POLLIN)
    poller.register(wake, select.POLLIN)
    while control not in {descriptor for descriptor, _ in poller.poll()}:
        with contextlib.suppress(BlockingIOError):
            os.read(wake, 4096)
        reap(control, command)
    kill_all(control, command)


def read_command(control: int) -> tuple[list[bytes], dict[bytes, bytes]]:
    """The arguments and the environment of the command."""
    size = b""
    while not size.endswith(b"\n"):
        size += os.read(control, 1)
    left = int(size)
    chunks = []
    while left:
        chunk = os.read(control, min(left, 1 << 16))
        if not chunk:
            sys.exit(0)
        chunks.append(chunk)
        left -= len(chunk)
    count, *fields = b"".join(chunks).split(b"\0")
    arguments, variables = fields[: int(count)], fields[int(count) :]
    pairs = (variable.partition(b"=") for variable in variables)
    return arguments, {name: value for name, _, value in pairs}


def become(control: int, arguments: list[bytes], environment: dict[bytes, bytes]) -> None:
    """Never returns: this process is the command now, in a session of its own."""
    try:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(arguments[0], arguments, environment)  # noqa: S606 - proc.py, the door, gave it
    except OSError as exc:
        tell(control, f"errno {exc.errno}\n")
    finally:
        os._exit(127)


def let_go_of_streams() -> None:
    """The command's streams are its own: their readers see end of file when it, not we, has closed them."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


def reap(control: int, command: int) -> bool:
    """No zombie is left; the command's status was told if it is among them. Whether any child remains."""
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
    """No descendant is left, unless the kernel withholds its death for `KILL_SECONDS`."""
    give_up = time.monotonic() + KILL_SECONDS
    while reap(control, command) and time.monotonic() < give_up:
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_SECONDS)


def descendants(root: int) -> list[int]:
    """The processes below `root`, parents before their children."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would double the start-up time
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:  # noqa: PTH123
                parent = int(stat.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    found = list(children.get(root, []))
    for pid in found:
        found.extend(children.get(pid, []))
    return found


def tell(control: int, line: str) -> None:
    """The other side has the line, or is gone."""
    with contextlib.suppress(OSError):
        os.write(control, line.encode())


if __name__ == "__main__":
    main(int(sys.argv[1]))
