"""Runs what a model wrote for a made-up task, in the sandbox in which runs have their tests."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from clean_room_agent import proc
from clean_room_agent.app.fit.made_up_tasks import FunctionTask, made_up_tasks
from clean_room_agent.errors import CommandError, ConfigError
from clean_room_agent.folders import home_folder, temporary_folder
from clean_room_agent.orchestrator.run_config import SandboxConfig
from clean_room_agent.orchestrator.test_runs.worktrees import NO_SANDBOX
from clean_room_agent.sandbox.bubblewrap import MIB, Limits, Obstacle, Sandbox, working_bubblewrap
from clean_room_agent.sandbox.policy import Policy, tool_places

SECONDS = 10.0
INSIDE = Path("/run/cra-fit")
"""Where the temporary folder is in the sandbox."""
HELD = "every call gave what it should"
Check = Callable[[FunctionTask, str], bool]
"""Whether a file's text does what the task asks for."""


@contextlib.contextmanager
def checking(config: SandboxConfig, tell: Callable[[str], None]) -> Iterator[Check]:
    """What runs the checks; `tell` is told how code is isolated, if it is not.

    Raises:
        ConfigError: the configuration wants a sandbox, and none is possible.
        CommandError: nothing can be run in it.
    """
    with temporary_folder("fit") as folder:
        sandbox = _available_sandbox(config, folder, tell)

        def holds(task: FunctionTask, text: str) -> bool:
            program = f"{text}\n\n{task.check}print({HELD!r})\n".encode("utf-8", "replace")
            command = (sys.executable, "-I", "-B", "-")
            if sandbox is None:
                done = proc.run(command, cwd=folder, timeout=SECONDS, input=program, check=False)
            else:
                done = sandbox.run(command, env=os.environ, timeout=SECONDS, input=program)
            return done.returncode == 0 and done.stdout.decode("utf-8", "replace").rstrip().endswith(HELD)

        known = made_up_tasks().functions[0]
        if not holds(known, known.mended):
            raise CommandError(
                f"what is known to be right fails its check: {sys.executable} does not run where tests do",
                hint="`cra check --sandbox` says more",
            )
        yield holds


def _available_sandbox(config: SandboxConfig, folder: Path, tell: Callable[[str], None]) -> Sandbox | None:
    found = None if config.mode == "none" else working_bubblewrap()
    if found is None or isinstance(found, Obstacle):
        because = f" ({found.reason}; {found.remedy})" if found else ""
        if found and config.mode == "bwrap":
            raise ConfigError(
                f'[sandbox] mode = "bwrap", but no sandbox is possible: {found.reason}', hint=found.remedy
            )
        tell(f"{NO_SANDBOX}{because}")
        return None
    read = (*tool_places(os.environ, [sys.executable]), Path(sys.prefix), Path(sys.base_prefix))
    return Sandbox(
        bubblewrap=found,
        policy=Policy(
            tree=folder, at=INSIDE, home=home_folder(), read=read, scratch_bytes=config.scratch_mb * MIB
        ),
        limits=Limits(
            memory=config.memory_mb * MIB, processes=config.processes, file_size=config.file_mb * MIB
        ),
    )
