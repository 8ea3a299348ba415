"""Attempts to escape from the sandbox: `escapes` runs this file in it as a program; nothing imports it.

Reads one JSON object from its argument, and prints a line `name TAB reached|refused TAB detail` for each attempt.
"""

import ctypes
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import NoReturn

FACTS = json.loads(sys.argv[1])
HOME, AT = FACTS["home"], FACTS["at"]
NEW_USER_NAMESPACE = 0x10000000


def read(path: str) -> str:
    with open(path) as file:
        return file.read()


def write(path: str) -> int:
    with open(path, "a") as file:
        return file.write("escaped")


def write_and_lose(path: str) -> NoReturn:
    """Write into what should be an empty folder in memory: whether it was, is seen from outside."""
    write(path)
    raise PermissionError("looked for from outside")


def unshare() -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_USER_NAMESPACE) != 0:
        raise PermissionError(os.strerror(ctypes.get_errno()))


def leave_daemon() -> NoReturn:
    """Start a process of its own session that writes once this one has ended."""
    command = os.getpid()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 3)
            while os.path.exists(f"/proc/{command}"):
                time.sleep(0.02)
            time.sleep(0.1)
            write(AT + "/daemon-lived")
        os._exit(0)
    os.wait()
    raise PermissionError("looked for from outside")


ATTEMPTS: dict[str, Callable[[], object]] = {
    "read an ssh key": lambda: read(HOME + "/.ssh/id_rsa"),
    "read the record": lambda: read(AT + "/.clean_room/raw.sqlite"),
    "read a secret variable": lambda: os.environ["CRA_SECRET"],
    "write into the home": lambda: write_and_lose(HOME + "/.bashrc"),
    "write into the system": lambda: write(FACTS["system"]),
    "replace .git": lambda: os.rename(AT + "/.git", AT + "/.git.old"),
    "reach the network": lambda: socket.create_connection(("127.0.0.1", FACTS["port"]), 2.0),
    "kill a process outside": lambda: os.kill(FACTS["victim"], 9),
    "make a namespace": unshare,
    "leave a daemon": leave_daemon,
}

for name, attempt in ATTEMPTS.items():
    try:
        word, detail = "reached", attempt()
    except BaseException as error:
        word, detail = "refused", f"{type(error).__name__} {error}"
    print(f"{name}\t{word}\t{' '.join(str(detail).split())[:100]}", flush=True)
