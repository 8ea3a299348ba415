"""What stands watch in the processes of a test command, and what it saw."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from clean_room_agent import beneath
from clean_room_agent.removal import remove_tree

GUARD = Path(__file__).parent / "guard"
"""Holds what the processes load: shown to them read-only."""
FOLDER = "CRA_TEST_REPORTS"
"""The variable that names the folder in which it leaves what it saw."""
MAX_BYTES = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What was seen of the runners that a command started."""

    ended: bool | None = None
    """Whether each came to its end by itself; None where none was seen to start."""
    replaced: tuple[tuple[str, str], ...] = ()
    """(function of the runner, file of the code that stands in its place), sorted."""


def guard_folder(report: Path) -> Path:
    """Where the guard leaves what it saw, beside the runner's own report."""
    return report.with_suffix(".guard")


def clear(report: Path) -> None:
    """Nothing is left of an earlier command, and the folder is there."""
    folder = guard_folder(report)
    remove_tree(folder)
    folder.mkdir(parents=True, exist_ok=True)


def read_watched(report: Path) -> Watched:
    """What the guard saw of the runners in Python."""
    folder = guard_folder(report)
    started = sorted(folder.glob("python-*.started"))
    if not started:
        return Watched()
    ends = [_end(folder, f"{place.stem}.ended") for place in started]
    workers = [_end(folder, place.name) for place in sorted(folder.glob("python-*.replaced"))]
    replaced = {pair for end in (*ends, *workers) if end is not None for pair in end}
    return Watched(ended=all(end is not None for end in ends), replaced=tuple(sorted(replaced)))


def newly_replaced(before: Iterable[tuple[str, str]], after: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """What `after` has replaced and `before` had not, in words, sorted."""
    had = set(before)
    return tuple(f"{name} by {file}" for name, file in sorted(set(after) - had))


def _end(folder: Path, name: str) -> list[tuple[str, str]] | None:
    """What a runner left at its end; None where it left nothing that can be read."""
    try:
        pairs = json.loads(beneath.read_bytes(folder, name, max_bytes=MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(pairs, list):
        return None
    return [(str(pair[0]), str(pair[1])) for pair in pairs if isinstance(pair, list) and len(pair) == 2]
