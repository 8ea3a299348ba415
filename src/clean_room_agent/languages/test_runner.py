"""What the program needs to know of a runner of tests; each is a file that fills this, and one line in `test_runners.py`. And what
the processes of a test command leave in a folder of their own: runners' reports, and what the guard in them saw.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Protocol

from msgspec import Struct

from clean_room_agent import safe_open
from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.artifacts.test_results import Reading
from clean_room_agent.languages.repository_files import RepositoryFiles

MAX_FILES = 4_000
"""Files of one kind: one for each process in which a runner started."""
MAX_BYTES = 10_000_000
"""Limit for all the guard's files of one command together."""
PYTHON = "python-"
"""How the files of Python's processes begin; those of others begin with the runner's name."""


class GuardReader:
    """Reads files in one folder up to a limit of bytes, since code under test can write there as well."""

    def __init__(self, folder: Path, *, max_bytes: int) -> None:
        self._folder = folder
        self._left = max_bytes

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
            OSError: there is none, or it is something else.
            TooMuchError: together with those read before, there are too many bytes.
        """
        data = safe_open.read_bytes(self._folder, name, max_bytes=self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise TooMuchError
        return data


class TooMuchError(Exception):
    """There is more than is read."""


def guard_folder(report: Path) -> Path:
    """The folder for what the guard sees, next to the runner's own report."""
    return report.with_suffix(".guard")


class ReportRequest(Struct, frozen=True, kw_only=True):
    """A command whose runner is to report its tests."""

    command: str
    package: str = ""
    """The text of the package.json at the top of the tree; "" if there is none."""
    report: Path
    """Where a report may be left; beside it is the `guard_folder`."""
    guard: Path
    """The folder of what processes load."""


class EndedCommand(Struct, frozen=True, kw_only=True, dict=True):
    """A test command that has ended, and what it left."""

    command: str
    returncode: int
    text: str
    """What it printed, without escapes."""
    report: Path
    cwd: Path

    @property
    def folder(self) -> Path:
        """What the guard and the runners that it asked left."""
        return guard_folder(self.report)

    @cached_property
    def started(self) -> Mapping[str, int]:
        """In how many processes each runner was seen to start; "" stands for others of Python."""
        reader = GuardReader(self.folder, max_bytes=MAX_BYTES)
        found: Counter[str] = Counter()
        try:
            for name in reader.names("*.started"):
                is_python = name.startswith(PYTHON)
                found[
                    reader.read(name).decode("utf-8", "replace") if is_python else name.rpartition("-")[0]
                ] += 1
        except (OSError, TooMuchError):
            return {}
        return found

    def reports(self, suffix: str) -> tuple[str, ...]:
        """The names of the reports of Python's processes that the guard saw start."""
        reader = GuardReader(self.folder, max_bytes=MAX_BYTES)
        try:
            left = {name.removesuffix(suffix) for name in reader.names(f"{PYTHON}*{suffix}")}
            seen = [name.removesuffix(".started") for name in reader.names(f"{PYTHON}*.started")]
        except TooMuchError:
            return ()
        return tuple(f"{name}{suffix}" for name in seen if name in left)


class TestRunner(Protocol):
    """A runner of tests. Where a method has a body, that is what most runners do."""

    __test__: ClassVar[bool] = False  # its name must not make pytest collect it

    name: str
    """In the record, and in messages."""
    has_log: bool = False
    """Whether the guard in its processes records each test as it is found, begins and ends, so that a run which died is known up
    to where it did.
    """
    is_exact: bool = False
    """Whether a command by `only` runs these tests alone."""
    traced: str = ""
    """What of it can be traced: single "tests", each "process", or nothing."""
    holder: str = r"(?!)"
    """A pattern of names under which it reports failures outside of tests."""
    absent: str = r"(?!)"
    """A pattern of what is said of a module that is not there. One pattern is made of all runners', so a group's name may stand in one
    alone; what the groups mean is in `package_of` (`orchestrator/test_runs/missing_modules.py`)."""

    def detect(self, files: RepositoryFiles) -> str:
        """The command that runs the repository's tests; "" if its files don't show that this runner does."""

    def asked(self, command: str) -> str:
        """The command, with this runner asked to report its tests."""
        return command

    def environment(self, env: Mapping[str, str], request: ReportRequest) -> dict[str, str]:
        """The variables of `env` that ask this runner to report its tests, with their new values."""
        return {}

    def may_wait(self, command: str, root: Path) -> bool:
        """Whether the command, run in `root`, may start this runner so that it waits for changes without an end, unless the
        variable CI is set.
        """
        return False

    def read(self, ended: EndedCommand) -> Reading | None:
        """The results by the runner's reports; None if it was not seen to run."""

    def read_printed(self, ended: EndedCommand) -> Reading | None:
        """The results as they are printed; None if nothing of this runner is. Asked where no runner left a report."""
        return None

    def only(self, command: str, names: Collection[str]) -> str | None:
        """The plain command for the tests of these names, and perhaps others with such titles; None if it cannot be derived."""

    def full_name(self, path: str, test: str) -> str:
        """The name of the test `Class::function`, or its title, in the file."""
        return test

    def frames(self, text: str) -> Iterator[StackFrame]:
        """The frames that a failure's text shows, innermost first, with their paths as they stand there."""
