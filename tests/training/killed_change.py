"""Dies at the lines of changing which adapter answers, and tells what it left. Run as a script, never imported.

python killed_change.py REPOSITORY COPY ACTION: REPOSITORY is copied to COPY, and the change is made there once to see
before which lines, of those in the files that make it, anything lies otherwise on disk. At each of these, of a copy of its
own, the kernel kills a child process that makes the change: dying at another line leaves what dying at the one before did.
One line of JSON for each line that was run, and one for the end: what the configuration says, and what it says, with the
registry and the index, after the next command looked.
"""

import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

from clean_room_agent import trust
from clean_room_agent.config import read_toml
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.curated.metadata import get_active_adapter
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import list_adapters, list_deployments
from clean_room_agent.training.deployment import Deployer, previous_tags
from clean_room_agent.workspace import Workspace

WATCHED = ("training/deployment.py", "file_contents.py", "curated/metadata.py")
NOW = "2026-01-02T03:04:05Z"


class Watched:
    """Calls `reach` before each line of the watched files."""

    def __init__(self, reach: Callable[[], None]) -> None:
        self._reach = reach

    def __call__(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if not frame.f_code.co_filename.endswith(WATCHED):
            return None
        if event == "line":
            self._reach()
        return self


class Killer:
    """Kills this process when the n-th line is reached."""

    def __init__(self, number: int) -> None:
        self._left = number

    def __call__(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def change(top: Path, action: str) -> None:
    with Record.open(top, clock=lambda: NOW) as record:
        deployer = Deployer(
            workspace=Workspace(repo=top), record=record, roles={"scope_judgment": "classifier"}
        )
        newest = record.write(list_adapters)[-1]
        if action == "deploy":
            deployer.deploy(newest, evaluation_id=None, reason="for the test")
        elif action == "retire":
            deployer.retire(newest)
        else:
            deployer.tell_who_is_in_force()


def overrides(top: Path) -> dict[str, str]:
    found: dict[str, str] = read_toml(Workspace(repo=top).config)["models"].get("overrides", {})
    return found


def told(top: Path) -> dict[str, Any]:
    left = overrides(top)
    change(top, "look")
    workspace = Workspace(repo=top)
    with Record.open(top, clock=lambda: NOW) as record:
        deployed = [each.model_tag for each in record.write(list_adapters) if each.deployed]
        before = previous_tags(
            record.write(list_deployments, "scope_judgment"), left.get("scope_judgment", "")
        )
    with closing(connect_file("curated", workspace.curated, read_only=True)) as conn:
        active = get_active_adapter(conn, "scope_judgment")
    return {
        "left": left.get("scope_judgment", ""),
        "deployed": deployed,
        "active": active and active.model_tag,
        "before": before,
    }


def copied(source: Path, copy: Path) -> None:
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy)
    trust._note_down(copy / ".clean_room")


def mark(top: Path) -> str:
    """Differs where anything that a process leaves behind does."""
    digest = hashlib.sha256()
    for path in sorted(top.rglob("*")):
        digest.update(os.fsencode(path) + (path.read_bytes() if path.is_file() else b""))
    return digest.hexdigest()


def marks_at_lines(top: Path, action: str) -> list[str]:
    """What is on disk before each line."""
    found: list[str] = []
    sys.settrace(Watched(lambda: found.append(mark(top))))
    change(top, action)
    sys.settrace(None)
    return found


def died_at(top: Path, action: str, number: int) -> None:
    child = os.fork()
    if child == 0:
        sys.settrace(Watched(Killer(number)))
        change(top, action)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def main() -> None:
    source, copy, action = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    copied(source, copy)
    marks = marks_at_lines(copy, action)
    lines = [""]
    for number, now in enumerate(marks, start=1):
        if number == 1 or now != marks[number - 2]:
            copied(source, copy)
            died_at(copy, action, number)
            lines.append(json.dumps(told(copy)))
        else:
            lines.append(lines[-1])
    copied(source, copy)
    change(copy, action)
    sys.stdout.write("\n".join([*lines[1:], json.dumps(told(copy))]) + "\n")


if __name__ == "__main__":
    main()
