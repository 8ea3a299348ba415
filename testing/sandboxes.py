"""Whether sandboxes can be had on this machine; tests of what they do are skipped, with the reason, where not."""

from functools import cache

import pytest

from clean_room_agent.sandbox.bubblewrap import Bubblewrap, Obstacle, working_bubblewrap


@cache
def _found() -> Bubblewrap | Obstacle:
    return working_bubblewrap()


def installed() -> Bubblewrap:
    """The bubblewrap of this machine; the test is skipped where there are no sandboxes."""
    found = _found()
    if isinstance(found, Obstacle):
        pytest.skip(f"no sandbox on this machine: {found.reason}")
    return found
