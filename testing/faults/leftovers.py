"""Commands that do what they can to outlive their end, in the sandbox and without one: what still runs afterwards.

Four ends: the command returns by itself, its time is up, `cra` gets Ctrl-C, `cra` is killed. Processes are found by a
mark in their command lines, which children inherit.
"""

import contextlib
import os
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from clean_room_agent import proc
from clean_room_agent.sandbox.bubblewrap import Bubblewrap, Sandbox, working_bubblewrap
from clean_room_agent.sandbox.policy import Policy
from clean_room_agent.sandbox.tool_mounts import interpreter_places
from testing.faults.figures import Effort, Figure
from testing.forked import Forked
from testing.patience import stop_once_begun
from testing.repositories import commit
from testing.runs.solving import TASK, Script, make_project
from testing.servers.ollama_server import OllamaServer

Mode = Literal["bwrap", "none"]
End = Literal["return", "time-out", "Ctrl-C", "kill -9"]
ENDS: tuple[End, ...] = ("return", "time-out", "Ctrl-C", "kill -9")
SHORT: tuple[tuple[str, End], ...] = (
    ("a daemon", "return"),
    ("respawn one another", "time-out"),
    ("ignore signals", "Ctrl-C"),
    ("stop themselves", "kill -9"),
)
GRACE_S = 15.0
START_S = 60.0
TRICKS = """
import os, signal, sys, time

def forever():
    while True:
        time.sleep(60)

def child(work):
    if os.fork() == 0:
        try:
            work()
        finally:
            os._exit(0)

def detached(work):
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    work()

def ignoring():
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    forever()

def stopped():
    while True:
        os.kill(os.getpid(), signal.SIGSTOP)

def respawning():
    other = os.getppid()
    while True:
        if os.getppid() != other:
            child(respawning)
            other = os.getppid()
        time.sleep(0.001)

def bomb(left=7):
    for _ in range(left):
        child(lambda: bomb(left - 1))
        left -= 1
    forever()

def another_name():
    os.execv("/bin/sleep", ["[kworker/0:1] " + sys.argv[2], "1000"])

def wait_for_the_end():
    signal.signal(signal.SIGTERM, lambda *_: child(lambda: detached(forever)))
    signal.signal(signal.SIGINT, lambda *_: child(lambda: detached(forever)))
    forever()

def kill_keepers():
    while os.getppid() > 1:
        try:
            os.kill(os.getppid(), signal.SIGKILL)
        except OSError:
            break
        time.sleep(0.05)
    try:
        os.kill(1, signal.SIGKILL)
    except OSError:
        pass
    child(lambda: detached(forever))

WORK = {
    "kill their keepers": kill_keepers,
    "fork": lambda: [child(forever) for _ in range(5)],
    "a session of their own": lambda: [child(lambda: detached(forever)) for _ in range(5)],
    "a daemon": lambda: child(lambda: detached(lambda: child(forever))),
    "ignore signals": lambda: [child(lambda: detached(ignoring)), child(ignoring)],
    "stop themselves": lambda: [child(stopped), child(lambda: detached(stopped))],
    "respawn one another": lambda: [child(lambda: detached(lambda: (child(respawning), respawning())))],
    "a bounded fork bomb": lambda: child(lambda: detached(bomb)),
    "another name": lambda: child(lambda: detached(another_name)),
    "start more when told to end": lambda: child(wait_for_the_end),
}
name, _, stay = sys.argv[1:]
WORK[name]()
time.sleep(0.3)
print("test_x (t.T.test_x) ... ok\\n\\n" + "-" * 70 + "\\nRan 1 test in 0.001s\\n\\nOK", file=sys.stderr, flush=True)
if stay == "stay":
    forever()
"""
NAMES = (
    *(
        "fork",
        "a session of their own",
        "a daemon",
        "ignore signals",
        "stop themselves",
        "respawn one another",
    ),
    *("a bounded fork bomb", "another name", "start more when told to end"),
)
IN_THE_SANDBOX: tuple[tuple[str, End], ...] = (
    ("kill their keepers", "return"),
    ("kill their keepers", "time-out"),
)
"""Without one, what kills its supervisor and then leaves its session does stay."""


def run(effort: Effort, work: Path) -> tuple[Figure, ...]:
    """A figure with the sandbox, where this machine has one, and a figure without."""
    modes: dict[Mode, str] = {"none": "without a sandbox"}
    if isinstance(working_bubblewrap(), Bubblewrap):
        modes = {"bwrap": "in the sandbox", **modes}
    figures = []
    for mode, where in modes.items():
        cases = SHORT if effort == "short" else tuple((name, end) for name in NAMES for end in ENDS)
        if mode == "bwrap" and effort == "full":
            cases = (*cases, *IN_THE_SANDBOX)
        left = 0
        for name, end in cases:
            found = leftovers(work / "case", mode, name, end)
            if found:
                print(f"{where}, {name}, {end}: {found} left", file=sys.stderr)
            left += found
        figures.append(
            Figure(
                name=f"processes left {where}: {len(cases)} tricks at the end of a command, its time, cra",
                tried=len(cases),
                found=left,
                target="0",
                met=not left,
            )
        )
    return tuple(figures)


def leftovers(folder: Path, mode: Mode, name: str, end: End) -> int:
    """How many processes of the trick still run after the end and a while; none does when this returns."""
    mark = f"mark-{secrets.token_hex(8)}"
    folder.mkdir(parents=True)
    try:
        if end in {"return", "time-out"}:
            _run_alone(folder, mode, (name, mark, "stay" if end == "time-out" else "go"))
        else:
            _run_in_solve(
                folder, mode, (name, mark, "stay"), signal.SIGINT if end == "Ctrl-C" else signal.SIGKILL
            )
        gone = wait_until(lambda: not marked(mark), GRACE_S)
        return 0 if gone else len(marked(mark))
    finally:
        _kill_marked(mark)
        shutil.rmtree(folder)


def _run_alone(folder: Path, mode: Mode, arguments: Sequence[str]) -> None:
    """The trick as a command of its own, as tests are run."""
    tree = folder / "tree"
    tree.mkdir()
    (tree / "trick.py").write_text(TRICKS)
    command = (sys.executable, "trick.py", *arguments)
    if mode == "none":

        def run(seconds: float) -> proc.Completed:
            return proc.run(command, cwd=tree, env=dict(os.environ), timeout=seconds, check=False)

        _require_ran(stop_once_begun(run, _has_run))
        return
    found = working_bubblewrap()
    assert isinstance(found, Bubblewrap)
    read = tuple(interpreter_places(Path(sys.prefix)))
    policy = Policy(tree=tree, at=tree, home=folder / "home", read=(*read, Path(sys.prefix)))
    sandbox = Sandbox(bubblewrap=found, policy=policy)

    def run_inside(seconds: float) -> proc.Completed:
        return sandbox.run(command, env=dict(os.environ), timeout=seconds)

    _require_ran(stop_once_begun(run_inside, _has_run))


def _has_run(done: proc.Completed) -> bool:
    return b"OK" in done.stderr


def _require_ran(done: proc.Completed) -> None:
    if not _has_run(done):
        raise SystemExit(f"the trick did not run: {done}")


def _run_in_solve(folder: Path, mode: Mode, arguments: Sequence[str], number: int) -> None:
    """The trick as the test command of `cra solve`, which gets the signal once the trick runs."""
    words = " ".join(f"'{word}'" for word in arguments)
    project = make_project(folder, test_command=f"{sys.executable} trick.py {words}")
    commit(project.top, {"trick.py": TRICKS}, "Add the trick")
    with OllamaServer(Script(project.oracle)) as server:
        project.configure(
            server.base_url,
            sandbox={"mode": mode},
            testing={"test_command": project.test_command, "timeout": 300.0},
        )
        with Forked(project, "solve", TASK) as begun:
            if not wait_until(lambda: len(marked(arguments[1])) > 1, START_S):
                raise SystemExit(f"the trick did not run: {arguments}")
            time.sleep(0.5)
            begun.send_signal(number)
            begun.wait()


def marked(mark: str) -> tuple[int, ...]:
    """The processes, zombies aside, with the mark in their command lines, shells that only pass it on aside."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                line = (place / "cmdline").read_bytes()
                if (
                    mark.encode() in line
                    and b"--json-status-fd" not in line
                    and not line.startswith(b"/bin/sh")
                ):
                    found.append(int(place.name))
    return tuple(sorted(found))


def wait_until(holds: Callable[[], bool], seconds: float) -> bool:
    """Whether it came to hold in time."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _kill_marked(mark: str) -> None:
    for _ in range(100):
        for pid in marked(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not marked(mark):
            return
        time.sleep(0.01)
