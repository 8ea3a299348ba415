"""`cra` in a process forked from this one, which has loaded it already: that costs a tenth of starting Python for it."""

import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from types import ModuleType, TracebackType
from typing import IO, Any, NoReturn, Self

from clean_room_agent.cli.main import run
from testing.patience import PATIENCE
from testing.runs.solving import Project

PIPED = ("stdin", "stdout", "stderr")


def program() -> Mapping[str, ModuleType]:
    """For `patch.dict(sys.modules, …)`: what a process started as `python -m clean_room_agent` has as its main module, which
    those that `multiprocessing` spawns load first. It would be all of pytest.
    """
    path = [*sys.path]
    try:
        return {"__main__": importlib.import_module("clean_room_agent.__main__")}
    finally:
        sys.path[:] = path


class Forked:
    """The command in the project's folder, under way; like a `subprocess.Popen` whose streams are pipes."""

    def __init__(
        self,
        project: Project,
        *args: str,
        terminal: Mapping[int, int] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`terminal`: for its descriptors (0 to 2) that are not pipes, the handles that they are instead, which stay the
        caller's to close. `environment` is the project's by default.
        """
        pipes = [os.pipe() for _ in PIPED]
        given, read, told = (pipes[0], pipes[1], pipes[2])
        self.pid = os.fork()
        if self.pid == 0:
            keep = {0: given[0], 1: read[1], 2: told[1]} | dict(terminal or {})
            _live(project, args, keep, environment, close=(given[1], read[0], told[0]))
        for handle in (given[0], read[1], told[1]):
            os.close(handle)
        self.stdin: IO[bytes] = os.fdopen(given[1], "wb", buffering=0)
        self.stdout: IO[bytes] = os.fdopen(read[0], "rb")
        self.stderr: IO[bytes] = os.fdopen(told[0], "rb")
        self.returncode: int | None = None
        self._waiting = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """It has ended, killed if the body did not wait for that; the pipes are closed."""
        if self.poll() is None:
            self.send_signal(signal.SIGKILL)
            self.wait()
        for pipe in (self.stdin, self.stdout, self.stderr):
            pipe.close()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def poll(self) -> int | None:
        """The exit code (negative: the signal); None while it runs."""
        with self._waiting:
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
            return self.returncode

    def wait(self, seconds: float = PATIENCE) -> int:
        """The exit code.

        Raises:
            TimeoutError: it has not ended by then.
        """
        until = time.monotonic() + seconds
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise TimeoutError(f"process {self.pid} has not ended after {seconds:.0f} s")
            time.sleep(0.005)
        return code

    def communicate(self) -> tuple[str, str]:
        """Standard output and standard error up to its end."""
        errors: list[bytes] = []
        reader = threading.Thread(target=lambda: errors.append(self.stderr.read()))
        reader.start()
        out = self.stdout.read()
        reader.join()
        self.wait()
        return out.decode(), errors[0].decode()


def _live(
    project: Project,
    args: Sequence[str],
    keep: Mapping[int, int],
    environment: Mapping[str, str] | None,
    *,
    close: Sequence[int],
) -> NoReturn:
    code = 70
    try:
        for handle in close:
            os.close(handle)
        for number, handle in keep.items():
            os.dup2(handle, number)
        for handle in {*keep.values()}:
            os.close(handle)
        modes: dict[str, Any] = {"stdin": "r", "stdout": "w", "stderr": "w"}
        for number, (name, mode) in enumerate(modes.items()):
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
        variables = dict(project.environment() if environment is None else environment)
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(project.top)
        sys.modules.update(program())
        signal.signal(signal.SIGINT, signal.default_int_handler)
        code = run(args)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
