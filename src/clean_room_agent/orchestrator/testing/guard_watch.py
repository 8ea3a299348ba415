"""Reads what the guard, which is loaded into the processes of a test command, saw of their runners."""

import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from clean_room_agent import safe_open
from clean_room_agent.tree_removal import remove_tree

GUARD = Path(__file__).parent / "guard"
"""Holds what the processes load: shown to them read-only."""
FOLDER = "CRA_TEST_REPORTS"
"""The variable that names the folder in which it leaves what it saw."""
MAX_BYTES = 10_000_000
"""Read of what it left for one command, all its files together."""
MAX_FILES = 4_000
"""Of one kind: one for each process in which a runner started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What was seen of the runners that a command started."""

    ended: bool | None = None
    """Whether each came to its end by itself; None where none was seen to start."""
    replaced: tuple[tuple[str, str], ...] = ()
    """(function of the runner, file of the code that stands in its place), sorted."""


class Reader:
    """Reads what was left in one folder until there were too many bytes: code under test can write there as well."""

    def __init__(self, folder: Path, *, max_bytes: int) -> None:
        self._folder = folder
        self._package = max_bytes

    def names(self, pattern: str) -> list[str]:
        """The files' names, sorted.

        Raises:
            TooMuchError: there are more than `MAX_FILES`.
        """
        found = list(itertools.islice(self._folder.glob(pattern), MAX_FILES + 1))
        if len(found) > MAX_FILES:
            raise TooMuchError
        return sorted(place.name for place in found)

    def read(self, name: str) -> bytes:
        """The file's bytes.

        Raises:
            OSError: there is none, or something else stands there.
            TooMuchError: with those read before, there are too many bytes.
        """
        data = safe_open.read_bytes(self._folder, name, max_bytes=self._package + 1)
        self._package -= len(data)
        if self._package < 0:
            raise TooMuchError
        return data


class TooMuchError(Exception):
    """More was left than is read."""


def guard_folder(report: Path) -> Path:
    """Where the guard leaves what it saw, beside the runner's own report."""
    return report.with_suffix(".guard")


def clear(report: Path) -> None:
    """Nothing is left of an earlier command, and the folder is there."""
    folder = guard_folder(report)
    remove_tree(folder)
    folder.mkdir(parents=True, exist_ok=True)


def read_watched(report: Path) -> Watched:
    """What the guard saw: of the runners in Python whether they ended, and of them and Node's what was replaced."""
    reader = Reader(guard_folder(report), max_bytes=MAX_BYTES)
    try:
        started = reader.names("python-*.started")
        ends = [_end(reader, f"{name.removesuffix('.started')}.ended") for name in started]
        seen = [_end(reader, name) for name in reader.names("*.replaced")]
    except TooMuchError:
        return Watched(ended=False)
    replaced = {pair for end in (*ends, *seen) if end is not None for pair in end}
    ended = all(end is not None for end in ends) if started else None
    return Watched(ended=ended, replaced=tuple(sorted(replaced)))


def newly_replaced(before: Iterable[tuple[str, str]], after: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """What `after` has replaced and `before` had not, in words, sorted."""
    had = set(before)
    return tuple(f"{name} by {file}" for name, file in sorted(set(after) - had))


def _end(reader: Reader, name: str) -> list[tuple[str, str]] | None:
    """What a runner left at its end; None where it left nothing that can be read."""
    try:
        pairs = json.loads(reader.read(name))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(pairs, list):
        return None
    return [(str(pair[0]), str(pair[1])) for pair in pairs if isinstance(pair, list) and len(pair) == 2]
