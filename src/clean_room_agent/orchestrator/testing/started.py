"""Whether a test command ran at all."""

import re

from clean_room_agent.orchestrator.testing.results import TestRun

NOT_STARTED = frozenset({126, 127})
"""What a shell exits with when it cannot start a program."""
NO_RUNNER = re.compile(r"No module named '?(?:pytest|unittest)'?\s*\Z")
"""Python's last words when it lacks the runner that it was to start."""


def has_started(tests: TestRun) -> bool:
    """Whether the command and its runner could be started."""
    return tests.returncode not in NOT_STARTED and not NO_RUNNER.search(tests.output.strip())


def says_nothing(tests: TestRun) -> bool:
    """Whether the run broke before any test had a result, and not for want of time."""
    return not tests.timed_out and (not has_started(tests) or (not tests.whole and not tests.outcomes))
