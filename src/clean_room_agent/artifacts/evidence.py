"""What a test run showed: each failing test with its message and place, and what its name says.

A test is named as its runner names it: `path::Class::test[param]`, `path > suite > test`, `module.Class.test`.
"""

import re

from msgspec import Struct

SEPARATOR = " > "
"""Separates the titles of JavaScript's tests; the first part is the file, if the runner says it."""
FIRST_MARK = re.compile(r"::| > ")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
UNLOADED = "unittest.loader._FailedTest."
"""Precedes the name of a module that unittest could not load."""
CODE_FILE = re.compile(r"\.(?:py|[cm]?[jt]sx?)\Z")
NUMBER = re.compile(r" #\d+\Z")


class StackFrame(Struct, frozen=True, kw_only=True):
    """One frame of a stack trace; `line` is 1-based, 0 if unknown."""

    path: str
    line: int = 0
    function: str = ""


class FailingTest(Struct, frozen=True, kw_only=True):
    """One test that failed, normalised (no absolute paths, durations, addresses)."""

    name: str
    message: str = ""
    """Assertion or error lines, at most a few."""
    path: str = ""
    """The file of the innermost known frame, or else the test's own."""
    line: int = 0
    """1-based, in `path`; 0 if unknown."""
    statement: str = ""
    """The failing source line of the test, stripped; "" if the runner does not show it."""
    expected: str = ""
    """The expected value as the runner gives it, of a long one the beginning and the end; "" if it gives none."""
    actual: str = ""
    """The actual value, likewise."""
    frames: tuple[StackFrame, ...] = ()
    """In the repository's own files, innermost first."""


class Evidence(Struct, frozen=True, kw_only=True):
    """What a test run showed, normalised, in a fixed order and limited in size."""

    tests: tuple[FailingTest, ...] = ()
    """Files that could not be collected first, then failing tests by name."""
    messages: tuple[str, ...] = ()
    """Assertion or error lines, without duplicates."""
    frames: tuple[StackFrame, ...] = ()
    """Of the failures, innermost first, without duplicates."""

    @property
    def failing_tests(self) -> tuple[str, ...]:
        """The names of the failing tests, in order."""
        return tuple(test.name for test in self.tests)


def file_part(name: str) -> str:
    """The part before the first `::` or ` > `: the test's file, or its first title; the whole name if there is neither.
    A file that could not be loaded is named by its path alone.
    """
    return FIRST_MARK.split(name, maxsplit=1)[0]


def is_of_file(name: str) -> bool:
    """Whether the name is that of a whole file, which could not be loaded."""
    return name.startswith(UNLOADED) or (CODE_FILE.search(name) is not None and file_part(name) == name)


def split_pytest_id(name: str) -> tuple[str, str]:
    """File and qualified name of a pytest id, without parameters; ("", name) for a bare name."""
    path, marked, rest = name.partition("::")
    if not marked:
        return "", name.partition("[")[0]
    return path, ".".join(part.partition("[")[0] for part in rest.split("::"))


def group_of(name: str) -> str:
    """The group of a test: its file, or its first title; the class of a dotted name."""
    return name.rpartition(".")[0] if DOTTED.fullmatch(name) else file_part(name)


def files_meant(name: str) -> tuple[str, ...]:
    """The relative paths that a test's name may refer to, likeliest first; some of them, or all, may not exist.

    unittest's dotted names start where its discovery did: the longest module comes first.
    """
    if name.startswith(UNLOADED):
        return (f"{name.removeprefix(UNLOADED).replace('.', '/')}.py",)
    if not DOTTED.fullmatch(name) or is_of_file(name):
        return (file_part(name),)
    parts = name.split(".")
    return (name, *("/".join(parts[:count]) + ".py" for count in range(len(parts) - 1, 0, -1)))


def titles_of(name: str) -> str:
    """The titles after the file in `path > suite > test`, still joined; "" if there are none."""
    return name.partition(SEPARATOR)[2]


def unnumbered(name: str) -> str:
    """The name without the number that distinguishes equal names."""
    return NUMBER.sub("", name)
