"""A shell at a terminal, as a person has it who presses keys."""

import contextlib
import os
import pty
import re
import select
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from testing.patience import PATIENCE

CONTROLS = re.compile(r"\x1b\[[0-9;?>=]*[a-zA-Z]|\x1b[=>(][B0]?|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\r\x07]")


class Shell:
    """A program that reads a terminal. What it shows is kept, without what steers the terminal."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> None:
        self._process, self._terminal = pty.fork()
        if self._process == 0:
            os.chdir(cwd)
            os.execvpe(command[0], list(command), dict(env))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._terminal)
        os.waitpid(self._process, 0)

    def type(self, keys: str) -> None:
        """Press these keys."""
        os.write(self._terminal, keys.encode())

    def shown_until(self, text: str) -> str:
        """What it shows from now on, up to `text` at least.

        Raises:
            AssertionError: it never showed that.
        """
        shown, end = "", time.monotonic() + PATIENCE
        while text not in shown:
            ready, _, _ = select.select([self._terminal], [], [], max(end - time.monotonic(), 0))
            assert ready, f"{text!r} never came: {shown!r}"
            shown = CONTROLS.sub("", shown + os.read(self._terminal, 65_536).decode(errors="replace"))
        return shown


def read_terminal(main: int) -> str:
    """What is written to a terminal until nobody has its other end open."""
    said = b""
    with contextlib.suppress(OSError):
        while piece := os.read(main, 4096):
            said += piece
    return said.decode()
