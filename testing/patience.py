"""Waiting in tests for what surely comes, also on a machine that stands still for a while."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 100.0
"""Seconds after which only a fault can be the reason; below the time that pytest gives a test."""


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Returns as soon as `condition` holds.

    Raises:
        AssertionError: it does not within `PATIENCE`; says `what` was waited for.
    """
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, f"waited in vain for {what}"
        time.sleep(0.01)


def stop_once_begun(run: Callable[[float], T], begun: Callable[[T], object]) -> T:
    """What `run`, which has no end, gives when it is stopped after the seconds that it is called with: few, but more
    where it had not `begun` by then."""
    done = run(0.5)
    for seconds in (3.0, 30.0):
        if begun(done):
            break
        done = run(seconds)
    return done
