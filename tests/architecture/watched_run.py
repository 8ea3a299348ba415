"""A command in a process of its own, watched by an audit hook."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from testing.patience import PATIENCE
from testing.runs.solving import Project

from clean_room_agent import proc

OBSERVER = Path(__file__).with_name("observed_command.py")


class Opened(Struct, frozen=True, kw_only=True):
    """A database or a connection that was opened, and by whom."""

    event: str
    target: str
    thread: str
    stack: tuple[str, ...]
    """`module:function` of the package's frames, outermost first."""

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules of the stack, each run of frames of one module once."""
        names = [frame.partition(":")[0] for frame in self.stack]
        return tuple(name for place, name in enumerate(names) if place == 0 or names[place - 1] != name)


class Watched(Struct, frozen=True, kw_only=True):
    """A run, and all that its process opened, in order."""

    returncode: int
    stderr: str
    opened: tuple[Opened, ...]
    imported: tuple[str, ...]
    """The package's modules that its process imported."""

    def databases(self) -> tuple[Opened, ...]:
        return tuple(entry for entry in self.opened if entry.event == "sqlite3.connect")

    def network(self) -> tuple[Opened, ...]:
        """All that has to do with other machines, or could."""
        return tuple(entry for entry in self.opened if entry.event != "sqlite3.connect")

    def connections(self) -> tuple[Opened, ...]:
        return tuple(entry for entry in self.opened if entry.event == "socket.connect")


def watch(project: Project, args: Sequence[str]) -> Watched:
    """`cra` with `args` in the project's repository."""
    report = project.home / "opened.json"
    done = proc.run(
        (sys.executable, str(OBSERVER), str(report), *args),
        cwd=project.top,
        env=project.environment(),
        timeout=PATIENCE,
        check=False,
    )
    seen = json.loads(report.read_text(encoding="utf-8"))
    opened = tuple(Opened(**{**entry, "stack": tuple(entry["stack"])}) for entry in seen["opened"])
    return Watched(
        returncode=done.returncode,
        stderr=done.stderr.decode(),
        opened=opened,
        imported=tuple(seen["imported"]),
    )
