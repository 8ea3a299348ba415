"""A program for tests: runs `cra` with the given arguments and writes down who opened databases and connections.

Usage: observed_command.py REPORT ARGUMENT...
REPORT becomes JSON: `opened`, a list of `{"event", "target", "thread", "stack"}`, where a stack is a list of `module:function`
of this package alone, outermost first; and `imported`, the package's modules that the command imported. An audit hook cannot be
taken away again, so it lives in a process of its own.
"""

import contextlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

BY_FIRST = ("sqlite3.connect", "socket.getaddrinfo", "socket.gethostbyname", "urllib.Request")
"""Events whose first argument says what is meant; with the others it is the second."""
WATCHED = (*BY_FIRST, "socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg")
PACKAGE = "clean_room_agent"


def stack_of(frame: FrameType | None) -> list[str]:
    """`module:function` of every frame of the package, outermost first."""
    found: list[str] = []
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(f"{PACKAGE}."):
            found.append(f"{module.removeprefix(f'{PACKAGE}.')}:{frame.f_code.co_qualname}")
        frame = frame.f_back
    return found[::-1]


@contextlib.contextmanager
def written_down(report: Path) -> Iterator[None]:
    """What this process opens meanwhile stands in `report` afterwards."""
    seen: list[dict[str, Any]] = []
    process = os.getpid()

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event not in WATCHED or os.getpid() != process:
            return
        target = args[0] if event in BY_FIRST else args[1]
        stack = stack_of(sys._getframe(1))
        thread = threading.current_thread().name
        seen.append({"event": event, "target": str(target), "thread": thread, "stack": stack})

    sys.addaudithook(hook)
    try:
        yield
    finally:
        imported = sorted(name for name in sys.modules if name.startswith(f"{PACKAGE}."))
        report.write_text(json.dumps({"opened": seen, "imported": imported}), encoding="utf-8")


if __name__ == "__main__":
    from clean_room_agent.cli.main import main

    with written_down(Path(sys.argv[1])):
        sys.exit(main(sys.argv[2:]))
