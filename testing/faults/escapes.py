"""The escape suite: attempts to get out of the sandbox, as root and as an ordinary user."""

import os
import shutil
from pathlib import Path

from clean_room_agent.sandbox.bubblewrap import Bubblewrap, find_bubblewrap
from clean_room_agent.sandbox.escapes import BECOME_NOBODY
from testing.escapes.suite import try_escapes
from testing.faults.figures import Effort, Figure

LEAST = 45


def run(effort: Effort, work: Path) -> tuple[Figure, ...]:
    """One figure for root and one for an ordinary user, where this machine can try as both."""
    found = find_bubblewrap()
    if not isinstance(found, Bubblewrap):
        raise SystemExit(f"{found.reason}; {found.remedy}")
    root = os.geteuid() == 0
    ways = {"root" if root else "an ordinary user": False}
    if root and shutil.which(BECOME_NOBODY[0]):
        ways["an ordinary user"] = True
    figures = []
    for who, as_nobody in ways.items():
        tried = try_escapes(found, dict(os.environ), as_nobody=as_nobody)
        escaped = sum(not attempt.blocked for attempt in tried)
        figures.append(
            Figure(
                name=f"escapes from the sandbox as {who}",
                tried=len(tried),
                found=escaped,
                target=f"0 of {LEAST} and more",
                met=not escaped and len(tried) >= LEAST,
            )
        )
    return tuple(figures)
