"""The runners of tests that the program knows; another one is a file beside these, and a line here."""

import re
from collections.abc import Iterator

from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.languages.ecmascript.node_runner import NodeRunner
from clean_room_agent.languages.ecmascript.npm_runners import JestRunner, MochaRunner, VitestRunner
from clean_room_agent.languages.go.go_test_runner import GoTestRunner
from clean_room_agent.languages.python.pytest_runner import PytestRunner
from clean_room_agent.languages.python.unittest_runner import UnittestRunner
from clean_room_agent.languages.test_runner import TestRunner

TEST_RUNNERS: tuple[TestRunner, ...] = (
    PytestRunner(),
    UnittestRunner(),
    VitestRunner(),
    JestRunner(),
    MochaRunner(),
    NodeRunner(),
    GoTestRunner(),
)
"""The likeliest first: in this order, commands are proposed, and what a command printed is read."""
HOLDER = re.compile("|".join(runner.holder for runner in TEST_RUNNERS))
"""Names under which runners report failures outside of tests."""

ABSENT = re.compile("|".join(dict.fromkeys(runner.absent for runner in TEST_RUNNERS)))
"""What is said of a module that is not there."""


def runner_named(name: str) -> TestRunner | None:
    """The runner of this name; None if it is not known."""
    return next((runner for runner in TEST_RUNNERS if runner.name == name), None)


def has_log(name: str) -> bool:
    """Whether the guard records the tests of the runner of this name."""
    runner = runner_named(name)
    return runner is not None and runner.has_log


def frames_in(text: str) -> Iterator[StackFrame]:
    """The frames that a text of any of the runners shows, innermost first, some more than once."""
    for runner in TEST_RUNNERS:
        yield from runner.frames(text)
