"""Dies at each line in turn of changing which adapter answers, and tells what it left. Run as a script, never imported.

python killed_change.py REPOSITORY COPY ACTION: for each n, REPOSITORY is copied to COPY and a child process makes the
change there, which the kernel kills at its n-th line in the files that make it. One line of JSON a death: what the
configuration says, and what it says, with the registry and the index, after the next command looked.
"""

import json
import os
import shutil
import signal
import sys
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

WATCHED = ("training/deployment.py", "whole_file.py", "curated/metadata.py")
NOW = "2026-01-02T03:04:05Z"


class Killer:
    """Kills this process at the n-th line of the watched files."""

    def __init__(self, number: int) -> None:
        self._left = number

    def __call__(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if not frame.f_code.co_filename.endswith(WATCHED):
            return None
        if event == "line":
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return self


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


def main() -> None:
    source, copy, action = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    number = 0
    while True:
        number += 1
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy)
        trust._note_down(copy / ".clean_room")
        child = os.fork()
        if child == 0:
            sys.settrace(Killer(number))
            change(copy, action)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in {0, -signal.SIGKILL}, status
        sys.stdout.write(json.dumps(told(copy)) + "\n")
        sys.stdout.flush()
        if status == 0:
            return


if __name__ == "__main__":
    main()
