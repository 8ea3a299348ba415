"""What attempts to escape from the sandbox do: the helpers of `attempts.py`, sent into the sandbox before it."""

import contextlib
import ctypes
import errno
import json
import os
import platform
import resource
import signal
import socket
import stat
import sys
import time
from typing import Any, NoReturn

FACTS = json.loads(sys.argv[1])
LIBC = ctypes.CDLL(None, use_errno=True)
ARM = platform.machine() in ("aarch64", "arm64")
MARK = "cra-escape"


def call(x86: int, arm: int, *arguments: Any) -> int:
    """The system call of that number on this machine; OSError where it is not allowed.

    If it fails for another reason (mostly a bad argument), the kernel has let it in, which is enough.
    """
    result = int(LIBC.syscall(ctypes.c_long(arm if ARM else x86), *arguments))
    if result < 0 and ctypes.get_errno() in {errno.EPERM, errno.EACCES, errno.ENOSYS}:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def made(x86: int, arm: int, *arguments: Any) -> int:
    """The result of the system call; raises if it is refused, with any error."""
    result = int(LIBC.syscall(ctypes.c_long(arm if ARM else x86), *arguments))
    return result if result >= 0 else refuse(os.strerror(ctypes.get_errno()))


def write(path: str) -> str:
    with open(path, "a") as file:
        file.write(MARK)
    return path


def read(path: str) -> str:
    with open(path, errors="replace") as file:
        return file.read(60) or refuse("empty")


def refuse(why: str) -> NoReturn:
    raise PermissionError(why)


def unseen(_: object) -> NoReturn:
    """Report an attempt as done, as far as can be seen from inside; `suite` checks the effect outside."""
    refuse("looked for from outside")


def listed(path: str, *, names: tuple[str, ...] = ()) -> list[str]:
    found = [name for name in os.listdir(path) if name in names or not names]
    return found or refuse("nothing there")


def open_for_writing(path: str) -> str:
    os.close(os.open(path, os.O_WRONLY))
    return path


def connect(family: int, kind: int, address: Any) -> str:
    with socket.socket(family, kind) as client:
        client.settimeout(1.5)
        client.connect(address)
        client.send(MARK.encode())
    return str(address)


def open_files() -> list[str]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            target = os.readlink("/proc/self/fd/" + name)
            if int(name) > 2 and not target.startswith("/proc/"):
                found.append(target)
    return found or refuse("none")


def setuid_file(how: str) -> str:
    path = os.path.join(FACTS["at"], "setuid-" + how)
    if how == "open":
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o4755))
    elif how == "mknod":
        os.mknod(path, stat.S_IFREG | 0o4755)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o755))
        os.chmod(path, 0o4755)
    return path if os.stat(path).st_mode & 0o4000 else refuse("the bit is not there")


def replace_git() -> str:
    path = os.path.join(FACTS["at"], ".git")
    os.rename(path, path + ".old")
    os.mkdir(path)
    return write(os.path.join(path, "config"))


def rewrite_git() -> str:
    with open(os.path.join(FACTS["at"], ".git"), "w") as file:
        file.write("gitdir: " + FACTS["at"])
    return "rewritten"


def link_out(name: str) -> str:
    path = os.path.join(FACTS["at"], "link-" + name)
    os.symlink(os.path.join(FACTS["home"], name), path)
    write(path)
    return path if os.path.exists(os.path.join(FACTS["home"], ".ssh")) else refuse("an own home")


def fill(path: str) -> str:
    size = 0
    with open(path, "wb") as file:
        while size < FACTS["scratch"] + (8 << 20):
            size += file.write(b"\0" * (1 << 20))
            file.flush()
    return f"{size} bytes"


def grow() -> str:
    with open(os.path.join(FACTS["at"], "large"), "wb") as file:
        file.truncate(FACTS["file_size"] + 1)
    return "grown"


def leave_daemon() -> NoReturn:
    """Start a process that leaves session, group and streams, and writes once the command is over."""
    command = os.getpid()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (0, 1, 2):
                with contextlib.suppress(OSError):
                    os.close(number)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            with contextlib.suppress(ProcessLookupError):
                while True:
                    os.kill(command, 0)
                    time.sleep(0.02)
            time.sleep(0.1)  # What ends with the command ends a moment after it.
            write(os.path.join(FACTS["at"], "daemon-lived"))
        os._exit(0)
    os.wait()
    unseen("started")


def push_character() -> str:
    terminal = os.open("/dev/tty", os.O_RDWR)
    if LIBC.ioctl(terminal, 0x5412, b"x") != 0:
        raise OSError(ctypes.get_errno(), "TIOCSTI")
    return "pushed"


def push_into_own_terminal() -> str:
    leader, follower = os.openpty()
    try:
        if LIBC.ioctl(follower, 0x5412, b"x") != 0 and ctypes.get_errno() == errno.EPERM:
            refuse("TIOCSTI")
        return "allowed"
    finally:
        os.close(leader)
        os.close(follower)


def fork_in_namespace() -> str:
    flags = 0x10000000 | signal.SIGCHLD
    if call(56, 220, flags, 0, 0, 0, 0) == 0:
        os._exit(0)
    os.wait()
    return "made"


def use_first_process() -> str:
    """Write into the memory of the sandbox's first process, which belongs to the same user and so must be confined as
    well.
    """
    return privileges("/proc/1/status")


def search_environment() -> str:
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if FACTS["secret"].encode() in file.read():
                    return name
    return refuse("nobody has it")


def kill_outside() -> str:
    os.kill(FACTS["victim"], signal.SIGKILL)
    return "killed"


def see_others() -> str:
    seen = [name for name in os.listdir("/proc") if name.isdigit()]
    return refuse("own namespace") if len(seen) < 10 else f"{len(seen)} processes seen"


def raise_limit(kind: int) -> str:
    soft, hard = resource.getrlimit(kind)
    if hard == resource.RLIM_INFINITY:
        return "no limit"
    resource.setrlimit(kind, (hard * 2, hard * 2))
    return f"{soft} raised"


def run(*command: str) -> str:
    """Run the program without a terminal; fails if it does."""
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_CLOSE, 0)])
    _, status = os.waitpid(pid, 0)
    return "ended well" if status == 0 else refuse(f"status {status}")


def capabilities() -> list[str]:
    with open("/proc/self/status") as status:
        kept = [
            line.split()[1] for line in status if line.startswith(("CapEff", "CapPrm", "CapBnd", "CapInh"))
        ]
    return kept if any(int(value, 16) for value in kept) else refuse("none")


def privileges(path: str = "/proc/self/status") -> str:
    with open(path) as status:
        found = dict(line.split(":", 1) for line in status)
    if (
        found["NoNewPrivs"].strip() == "1"
        and found["Seccomp"].strip() == "2"
        and int(found["CapEff"], 16) == 0
    ):
        refuse("no new privileges, filtered, no capabilities")
    return f"{found['NoNewPrivs']} {found['Seccomp']} {found['CapEff']}"


def lower_oom() -> str:
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("-1000")
    return "lowered"


def old_numbers() -> int:
    """x32's getpid on x86: numbers that a filter might forget."""
    return refuse("no such numbers") if ARM else call(0x40000000 + 39, 0)


def search(top: str) -> str:
    for folder, _, files in os.walk(top):
        for name in files:
            with contextlib.suppress(OSError), open(os.path.join(folder, name), "rb") as file:
                if FACTS["secret"].encode() in file.read():
                    return os.path.join(folder, name)
    return refuse("nothing there")


def write_record() -> str:
    os.mkdir(FACTS["at"] + "/.clean_room")
    return write(FACTS["at"] + "/.clean_room/raw.sqlite")


def find_record() -> str:
    for folder, folders, files in os.walk(FACTS["at"]):
        if ".clean_room" in folders or "raw.sqlite" in files:
            return str(folder)
    return refuse("not there")
