"""What the program needs to know of a runner of tests; each is one file that fills this, and one line in `test_runners.py`."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Protocol

from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.artifacts.test_results import Reading
from clean_room_agent.languages.repository_files import RepositoryFiles
from clean_room_agent.languages.run_reports import EndedCommand, ReportRequest


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
    """A pattern of what is said of a module that is not there."""

    def detect(self, files: RepositoryFiles) -> str:
        """The command that runs the repository's tests; "" if its files don't show that this runner does."""

    def asked(self, command: str) -> str:
        """The command, with this runner asked to report its tests."""
        return command

    def environment(self, env: Mapping[str, str], request: ReportRequest) -> dict[str, str]:
        """The variables of `env` that ask this runner to report its tests, with their new values."""
        del env, request
        return {}

    def may_wait(self, command: str, root: Path) -> bool:
        """Whether the command, run in `root`, may start this runner so that it waits for changes without an end, unless the
        variable CI is set.
        """
        del command, root
        return False

    def read(self, ended: EndedCommand) -> Reading | None:
        """The results by the runner's reports; None if it was not seen to run."""

    def read_printed(self, ended: EndedCommand) -> Reading | None:
        """The results as they are printed; None if nothing of this runner is. Asked where no runner left a report."""
        del ended
        return None

    def only(self, command: str, names: Collection[str]) -> str | None:
        """The plain command for the tests of these names, and perhaps others with such titles; None if it cannot be derived."""

    def full_name(self, path: str, test: str) -> str:
        """The name of the test `Class::function`, or its title, in the file."""
        del path
        return test

    def frames(self, text: str) -> Iterator[StackFrame]:
        """The frames that a failure's text shows, innermost first, with their paths as they stand there."""
