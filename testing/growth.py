"""How the time of a reader grows with what it reads; of the processor, so that other programs do not count."""

import gc
import time
from collections.abc import Callable
from typing import Any

SMALL = 20_000
"""Characters: enough for a time that can be compared."""
TIMES = 6
"""How many times as long the longer text is."""
QUADRATIC = 4.0
"""From here on growth counts as more than linear: linear growth is 1, quadratic is `TIMES`."""
NOTHING_S = 0.05
"""A time that is too short to say anything: the longer text took no time worth speaking of."""


def growth(read: Callable[[str], Any], unit: str, *, small: int = SMALL) -> float:
    """Time a character for a text of `unit` over and over, against one that is `TIMES` as long: 1 where it is linear.

    A growth that looks worse is measured again, and the best of five counts.
    """
    count = max(small // len(unit), 1)
    worst = 0.0
    for _ in range(5):
        long = _seconds(read, unit * count * TIMES)
        if long < NOTHING_S:
            return 1.0
        ratio = long / TIMES / max(_seconds(read, unit * count), 0.0005)
        if ratio < QUADRATIC:
            return ratio
        worst = min(worst, ratio) if worst else ratio
    return worst


def _seconds(read: Callable[[str], Any], text: str) -> float:
    # A collection looks at all that the tests' own process holds, and comes the sooner the longer the text is.
    gc.disable()
    try:
        started = time.process_time()
        read(text)
        return time.process_time() - started
    finally:
        gc.enable()
