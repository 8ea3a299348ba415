"""Whether a test command ran at all, and can judge."""

import re

from clean_room_agent.errors import ConfigError
from clean_room_agent.orchestrator.testing.config import TestingConfig
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


def require_judging(tests: TestRun, config: TestingConfig, key: str, *, sandboxed: bool) -> None:
    """A run before anything was changed, of the command `key` in [testing], can be the standard for what follows.

    Raises:
        ConfigError: the command cannot be started, does not end in time or finds no tests.
    """
    if not has_started(tests):
        said = tests.output.strip()[-300:]
        raise ConfigError(
            f"[testing] {key} cannot be started: {tests.command!r} exits with {tests.returncode}: {said}",
            hint=f"fix {key} in [testing]; it is run by the shell in a copy of the repository, with [worktree].link brought in"
            + ("; the sandbox shows more where [sandbox] read names it" if sandboxed else ""),
        )
    if tests.timed_out:
        quicker = "" if key == "step_test_command" else ", or let step_test_command judge by a part of them"
        raise ConfigError(
            f"[testing] {key} did not end within {config.timeout:g} s, before anything was changed: {tests.command!r}",
            hint=f"time it by itself and raise timeout in [testing] above that{quicker}",
        )
    if tests.is_empty and config.accept != "untested":
        raise ConfigError(
            f"[testing] {key} finds no tests: {tests.command!r}",
            hint=f'fix {key} in [testing]; where there are none, accept = "untested" says that nothing is tested',
        )
