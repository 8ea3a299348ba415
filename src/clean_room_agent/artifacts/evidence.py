"""What a run of the tests showed: each failing test with its own words, and where it failed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFrame:
    """One frame of a stack trace; `line` is 1-based, 0 where unknown."""

    path: str
    line: int = 0
    function: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingTest:
    """One test that failed, normalised (no absolute paths, durations, addresses)."""

    name: str
    message: str = ""
    """Assertion or error lines, at most a few."""
    path: str = ""
    """The file of the innermost frame that is known, else the test's own."""
    line: int = 0
    """1-based, in `path`; 0 where unknown."""
    statement: str = ""
    """The source line of the test that failed, stripped; "" where the runner does not show it."""
    expected: str = ""
    """The expected value as the runner gives it, whole up to a bound (head and tail kept); "" where it names none."""
    actual: str = ""
    """What came instead, likewise."""
    frames: tuple[StackFrame, ...] = ()
    """In the repository's own files, innermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a run of the tests showed, normalised; in a stated order and bounded."""

    tests: tuple[FailingTest, ...] = ()
    """Files that could not be collected first, then failing tests by name."""
    messages: tuple[str, ...] = ()
    """Assertion or error lines, each once."""
    frames: tuple[StackFrame, ...] = ()
    """Of the failures, innermost first, each once."""

    @property
    def failing_tests(self) -> tuple[str, ...]:
        """The names of the failing tests, in order."""
        return tuple(test.name for test in self.tests)
