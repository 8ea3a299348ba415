"""What a run of the tests showed: each failing test with its own words, where it failed, and what its name says.

A test is named as its runner names it: `path::Class::test[param]`, `path > suite > test`, `module.Class.test`.
"""

import re

from msgspec import Struct

SEPARATOR = " > "
"""Between the titles of JavaScript's tests; the first part is the file, where the runner tells it."""
FIRST_MARK = re.compile(r"::| > ")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
UNLOADED = "unittest.loader._FailedTest."
"""Before the name of a module that unittest could not load."""
CODE_FILE = re.compile(r"\.(?:py|[cm]?[jt]sx?)\Z")
NUMBER = re.compile(r" #\d+\Z")


class StackFrame(Struct, frozen=True, kw_only=True):
    """One frame of a stack trace; `line` is 1-based, 0 where unknown."""

    path: str
    line: int = 0
    function: str = ""


class FailingTest(Struct, frozen=True, kw_only=True):
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


class Evidence(Struct, frozen=True, kw_only=True):
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


def file_part(name: str) -> str:
    """What stands before the first `::` or ` > `: the test's file, or its first title; the whole name where neither is.

    A file that could not be loaded is named by its path alone.
    """
    return FIRST_MARK.split(name, maxsplit=1)[0]


def is_of_file(name: str) -> bool:
    """Whether the name stands for a whole file, which could not be loaded."""
    return name.startswith(UNLOADED) or (CODE_FILE.search(name) is not None and file_part(name) == name)


def split_pytest_id(name: str) -> tuple[str, str]:
    """File and qualified name of a pytest id, without parameters; ("", name) where it is a bare name."""
    path, marked, rest = name.partition("::")
    if not marked:
        return "", name.partition("[")[0]
    return path, ".".join(part.partition("[")[0] for part in rest.split("::"))


def group_of(name: str) -> str:
    """What a test shares with those that stand beside it: its file, or its first title; the class of a dotted name."""
    return name.rpartition(".")[0] if DOTTED.fullmatch(name) else file_part(name)


def files_meant(name: str) -> tuple[str, ...]:
    """The relative paths that a test's name may mean, likeliest first; some of them, or all, may not exist.

    unittest's dotted names start where its discovery did: the longest module comes first.
    """
    if name.startswith(UNLOADED):
        return (f"{name.removeprefix(UNLOADED).replace('.', '/')}.py",)
    if not DOTTED.fullmatch(name) or is_of_file(name):
        return (file_part(name),)
    parts = name.split(".")
    return (name, *("/".join(parts[:count]) + ".py" for count in range(len(parts) - 1, 0, -1)))


def titles_of(name: str) -> str:
    """The titles behind the file of `path > suite > test`, joined as they are; "" where there is none."""
    return name.partition(SEPARATOR)[2]


def unnumbered(name: str) -> str:
    """The name without the number that tells equal names apart."""
    return NUMBER.sub("", name)
