"""Ten attempts to escape from the sandbox among throw-away secrets, judged from outside as well as by what they report.

The test suite makes many more (`testing/escapes`): these show whether the sandbox holds on the user's machine.
"""

import contextlib
import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from clean_room_agent import proc
from clean_room_agent.errors import CommandError
from clean_room_agent.folders import temporary_folder
from clean_room_agent.sandbox.bubblewrap import MIB, Bubblewrap, Limits, Sandbox
from clean_room_agent.sandbox.policy import GitFolder, Policy, is_system, tool_places

PROGRAM = Path(__file__).with_name("escape_attempts.py")
NOBODY = 65534
BECOME_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
PLAIN = {"PATH": "/usr/bin:/bin"}
SYSTEM_FILE = Path("/etc/cra-escape")
SECRET = "cra-secret-5f1c"  # noqa: S105 - it is made to be looked for
FILES = {
    "home/.ssh/id_rsa": SECRET,
    "home/.bashrc": "# the user's own",
    "home/project/.clean_room/raw.sqlite": SECRET,
    "home/project/.git/objects/info/packs": "\n",
    "home/project/.git/worktrees/t/HEAD": "ref: refs/heads/main\n",
    "tree/.git": "gitdir: elsewhere\n",
}
"""What is in the folder in which the attempts are made: the user's home, his repository, and the tree of a run."""
TIMEOUT_S = 60.0
DAEMON_S = 0.5
"""Seconds within which a process that outlives its command leaves its trace."""


class EscapeAttempt(Struct, frozen=True, kw_only=True):
    """One escape that was tried."""

    name: str
    blocked: bool
    detail: str


def try_escapes(
    bubblewrap: Bubblewrap, environment: Mapping[str, str], *, as_nobody: bool = False
) -> tuple[EscapeAttempt, ...]:
    """Make every attempt, as the user or (root only) as an unprivileged user, and return the outcomes.

    Raises:
        CommandError: the sandbox could not be set up, or the attempts did not finish.
    """
    before = BECOME_NOBODY if as_nobody else ()
    known = PLAIN if as_nobody else environment  # root's own tools are closed to others
    with (
        temporary_folder("escapes") as folder,
        _listener() as listener,
        _victim_process(folder, before) as victim,
    ):
        for name, text in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        if as_nobody:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        python = find_python(known)
        sandbox = Sandbox(
            bubblewrap=bubblewrap,
            policy=_sandbox_policy(folder, tool_places(known, (python,))),
            limits=Limits(memory=256 * MIB, processes=100),
            before=before,
        )
        home = folder / "home"
        facts = {
            "home": str(home),
            "at": str(sandbox.policy.at),
            "system": str(SYSTEM_FILE),
            "port": listener.getsockname()[1],
            "victim": victim,
        }
        untouched = _file_contents(folder)
        command = (python, "-I", "-S", "-B", "-", json.dumps(facts))
        done = sandbox.run(
            command,
            env={**known, "CRA_SECRET": SECRET},
            timeout=TIMEOUT_S,
            input=PROGRAM.read_bytes(),
        )
        told = [line.split("\t") for line in done.stdout.decode("utf-8", "replace").splitlines()]
        if done.returncode != 0 or not told:
            said = done.stderr.decode("utf-8", "replace")[-500:]
            raise CommandError(f"the attempts did not finish ({done.returncode}): {said}")
        time.sleep(DAEMON_S)
        traces = {
            "write into the home": _file_contents(folder) != untouched,
            "write into the system": SYSTEM_FILE.exists(),
            "reach the network": _was_reached(listener),
            "kill a process outside": not Path("/proc", str(victim)).exists(),
            "leave a daemon": (folder / "tree/daemon-lived").exists(),
        }
    return tuple(
        EscapeAttempt(
            name=name,
            blocked=word == "refused" and not traces.get(name),
            detail="its trace is outside" if traces.get(name) else detail,
        )
        for name, word, detail in told
    )


def _sandbox_policy(folder: Path, read: tuple[Path, ...]) -> Policy:
    """That of a run in the folder's tree."""
    project = folder / "home/project"
    git = GitFolder(
        written={"config": b"[core]\n\trepositoryformatversion = 0\n"},
        folders={"objects": project / ".git/objects"},
        worktree=project / ".git/worktrees/t",
    )
    return Policy(
        tree=folder / "tree", at=project, home=folder / "home", read=read, git=git, scratch_bytes=16 * MIB
    )


def _file_contents(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text(encoding="utf-8", errors="replace") for name in FILES}


def find_python(environment: Mapping[str, str]) -> str:
    """An interpreter that every user can run, if there is one."""
    system = shutil.which("python3", path=PLAIN["PATH"])
    known = system if system is not None and is_system(Path(system)) else None
    return known or shutil.which("python3", path=environment.get("PATH")) or sys.executable


@contextlib.contextmanager
def _listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


def _was_reached(listener: socket.socket) -> bool:
    with contextlib.suppress(BlockingIOError):
        listener.accept()[0].close()
        return True
    return False


@contextlib.contextmanager
def _victim_process(folder: Path, before: tuple[str, ...]) -> Iterator[int]:
    """The number of a process of the user's, outside of the sandbox, that waits."""
    waiting = proc.stream((*before, "/bin/sh", "-c", "echo $$; exec sleep 300"), cwd=folder, env=PLAIN)
    with contextlib.closing(waiting):
        yield int(next(waiting))
