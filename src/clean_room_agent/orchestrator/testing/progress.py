"""How far pytest says it is, while it runs: of other runners only the end is known."""

import re
from collections.abc import Callable

SAID = re.compile(rb"\[ {0,2}(\d{1,3})%\]")
LONGEST = 6
"""Bytes of what `SAID` finds."""


class PercentReader:
    """Reads a runner's output as it comes, and tells each percentage once."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self._told = -1
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Read on; only the newest figure in `data` is told, and none that is not above what was told before."""
        data = self._rest + data
        self._rest = data[-(LONGEST - 1) :]
        figures = SAID.findall(data)
        if figures and self._told < int(figures[-1]) <= 100:
            self._told = int(figures[-1])
            self._tell(self._told)
