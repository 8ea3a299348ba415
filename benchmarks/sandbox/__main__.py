"""What the sandbox costs a command, and how many ways out of it are closed.

    python -m benchmarks.sandbox --write

from the repository's root, on a machine where bubblewrap works. The policy is that of a run on a small repository with
this machine's own tools. Commands with and without it take turns, so that both meet the same load; processor time is
what the system says of the ended children.
"""

import argparse
import os
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace
from testing.repositories import make_repository

from benchmarks.results import table, write_section
from clean_room_agent import proc
from clean_room_agent.child_processes import NO_LIMITS
from clean_room_agent.git.repository import open_repository
from clean_room_agent.git.worktree import add_worktree
from clean_room_agent.orchestrator.config import SandboxConfig, TestingConfig, WorktreeConfig
from clean_room_agent.orchestrator.testing.worktrees import SandboxInputs, set_up_sandbox
from clean_room_agent.sandbox.bubblewrap import Bubblewrap, Sandbox, find_bubblewrap, try_machine
from clean_room_agent.sandbox.escapes import BECOME_NOBODY, try_escapes

RESULTS = Path(__file__).with_name("RESULTS.md")

TITLE = "Sandbox"
TARGET_MS = 60
TRUE = ("/bin/true",)


def make_sandbox(folder: Path) -> Sandbox:
    """A run's sandbox over a small repository with a folder to link."""
    top = make_repository(folder / "project", {"a.py": "a = 1\n", ".gitignore": ".venv\n"})
    (top / ".venv/bin").mkdir(parents=True)
    repo = open_repository(top)
    tree = add_worktree(repo, repo.head, folder / "tree", "benchmark")
    sandbox_inputs = SandboxInputs(
        config=SandboxConfig(mode="bwrap"),
        testing=TestingConfig(test_command="true"),
        worktree=WorktreeConfig(),
        home=Path.home(),
        find=find_bubblewrap,
        try_machine=try_machine,
    )
    sandbox = set_up_sandbox(sandbox_inputs, tree, os.environ, folder / "reports/results.xml").sandbox
    assert sandbox is not None
    return sandbox


def measure(ways: dict[str, Callable[[], object]], times: int) -> dict[str, tuple[list[float], list[float]]]:
    """Milliseconds of time and of processor of each way, taken in turns."""
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in ways}
    for _ in range(times):
        for name, way in ways.items():
            before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            way()
            spent, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            found[name][0].append(1000 * spent)
            found[name][1].append(1000 * used)
    return found


def cost_table(folder: Path, times: int) -> str:
    """Time and processor of a command that does nothing, with and without the sandbox."""
    sandbox = make_sandbox(folder)
    environment = dict(os.environ)
    unbound = replace(sandbox, limits=NO_LIMITS)
    ways: dict[str, Callable[[], object]] = {
        "no sandbox": lambda: proc.run(TRUE, cwd=folder, timeout=60),
        "sandbox": lambda: sandbox.run(TRUE, env=environment, timeout=60),
        "sandbox without bounds": lambda: unbound.run(TRUE, env=environment, timeout=60),
    }
    measure(ways, 2)
    found = measure(ways, times)
    base_time, base_used = found["no sandbox"]
    rows = []
    for name, (spent, used) in found.items():
        more = [mine - other for mine, other in zip(spent, base_time, strict=True)]
        more_used = [mine - other for mine, other in zip(used, base_used, strict=True)]
        numbers = (
            min(spent),
            statistics.median(spent),
            statistics.median(more),
            statistics.median(more_used),
        )
        rows.append((name, *(f"{number:.0f}" for number in numbers)))
    head = ("a command", "least, ms", "median, ms", "more than without, median", "processor, more, median")
    return table(head, rows)


def escape_table(bubblewrap: Bubblewrap) -> str:
    """Attempts and how many were blocked, by who tried."""
    environment = dict(os.environ)
    root = os.geteuid() == 0
    kinds = {"root" if root else "the user": False}
    if root and shutil.which(BECOME_NOBODY[0]):
        kinds["an ordinary user"] = True
    rows = []
    for name, as_nobody in kinds.items():
        tried = try_escapes(bubblewrap, environment, as_nobody=as_nobody)
        rows.append((name, len(tried), sum(attempt.blocked for attempt in tried)))
    return table(("attempts to get out, as", "tried", "blocked"), rows)


def main() -> None:
    """The tables are printed and, on demand, written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--write", action="store_true", help="into RESULTS.md")
    options = parser.parse_args()
    found = find_bubblewrap()
    if not isinstance(found, Bubblewrap):
        raise SystemExit(f"{found.reason}; {found.remedy}")
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        costs = cost_table(Path(folder), options.times)
    text = (
        f"`python -m benchmarks.sandbox --times {options.times}`, bubblewrap {found.version}, "
        f"{os.cpu_count()} processors at a load of {load:.0f}; target: at most {TARGET_MS} ms more.\n\n"
        f"{costs}\n\n{escape_table(found)}"
    )
    print(text)
    if options.write:
        write_section(RESULTS, TITLE, text)


if __name__ == "__main__":
    main()
