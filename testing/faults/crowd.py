"""Many runs at once in one repository: each lands, and nothing of the user's changes."""

import contextlib
import shutil
import subprocess
import sys
from pathlib import Path

from testing.faults.figures import Figure
from testing.repositories import git, write
from testing.runs.solving import TASK, Script, make_project
from testing.servers.ollama_server import OllamaServer

PATIENCE_S = 600
TABLES = {
    "timeouts": {"connect": 60.0, "first_byte": 120.0, "idle": 120.0, "total": 300.0},
    "retries": 3,
}


def run_crowd(work: Path, count: int) -> Figure:
    """`count` runs that begin together; what counts is each that did not land, and each trace that was left."""
    shutil.rmtree(work, ignore_errors=True)
    project = make_project(work)
    write(project.top, {"draft.txt": "uncommitted\n"})
    with OllamaServer(Script(project.oracle)) as server:
        project.configure(server.base_url, models={"base_url": server.base_url, **TABLES})
        before = project.run_here("index")
        codes: list[int] = []

        def together() -> tuple[int, str, str]:
            with contextlib.ExitStack() as stack:
                command = (sys.executable, "-m", "clean_room_agent", "solve", TASK)
                begun = [
                    stack.enter_context(
                        subprocess.Popen(
                            command,
                            cwd=project.top,
                            env=project.environment(),
                            stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE,
                        )
                    )
                    for _ in range(count)
                ]
                said = [each.communicate(timeout=PATIENCE_S)[1].decode() for each in begun]
                codes.extend(each.returncode for each in begun)
            return (
                max(codes, key=abs),
                "",
                "\n".join(text for text, code in zip(said, codes, strict=True) if code),
            )

        told = project.observe(together)
    lost = sum(code != 0 for code in codes) + abs(count - len(told.branches))
    left = len(told.traces) + len(told.sessions)
    if lost or left or before[0]:
        print(told.err[-2000:], told.traces, told.sessions, file=sys.stderr)
    git(project.top, "fsck", "--full")
    shutil.rmtree(work)
    return Figure(
        name=f"runs that did not land, or left something, of {count} at once in one repository",
        tried=count,
        found=lost + left,
        target="0",
        met=not lost and not left,
    )
