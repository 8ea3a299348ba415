"""Whether what a test run says can be relied on: it ran at all, and what fails newly does not come and go by itself.

To find the latter, what fails newly is run without the others, twice here and twice at the base.
"""

import re
import shlex
from collections.abc import Callable, Collection, Mapping

from clean_room_agent.errors import ConfigError
from clean_room_agent.orchestrator.testing.config import TestingConfig
from clean_room_agent.orchestrator.testing.results import RED, TestRun

NOT_STARTED = frozenset({126, 127})
"""What a shell exits with when it cannot start a program."""
NO_RUNNER = re.compile(r"No module named '?(?:pytest|unittest)'?\s*\Z")
"""Python's last words when it lacks the runner that it was to start."""


def has_started(tests: TestRun) -> bool:
    """Whether the command and its runner could be started."""
    return tests.end.returncode not in NOT_STARTED and not NO_RUNNER.search(tests.end.output.strip())


def says_nothing(tests: TestRun) -> bool:
    """Whether the run broke before any test had a result, and not for want of time."""
    return not tests.end.timed_out and (
        not has_started(tests) or (not tests.report.whole and not tests.report.outcomes)
    )


def require_judging(tests: TestRun, config: TestingConfig, key: str, *, sandboxed: bool) -> None:
    """A run before anything was changed, of the command `key` in [testing], can be the standard for what follows.

    Raises:
        ConfigError: the command cannot be started, does not end in time or finds no tests.
    """
    if not has_started(tests):
        said = tests.end.output.strip()[-300:]
        raise ConfigError(
            f"[testing] {key} cannot be started: {tests.command!r} exits with {tests.end.returncode}: {said}",
            hint=f"fix {key} in [testing]; it is run by the shell in a copy of the repository, with [worktree].link brought in"
            + ("; the sandbox shows more where [sandbox] read names it" if sandboxed else ""),
        )
    if tests.end.timed_out:
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


MAX_NAMES = 10
"""More newly failing tests than these are a break, not bad luck: none is run again."""
TIMES = 2
SHELL = re.compile(r"[;&|<>`$()\n]")
VALUED = re.compile(
    r"-[kmpcoWnr]|--(?:rootdir|confcutdir|maxfail|durations|tb|import-mode|basetemp|timeout|dist|override-ini|color"
    r"|capture|log-level|cov-report|cov-config)"
)
"""pytest's options whose value is the next word."""

RunAgain = Callable[[tuple[str, ...]], Mapping[str, bool]]
"""Runs these tests and no others: which of them passed. What could not be run is missing."""


def unstable(names: Collection[str], here: RunAgain, base: RunAgain) -> tuple[str, ...]:
    """Those of `names` (newly failing) that are unstable: run again, they do not fail each time here, or at the base,
    where they passed, they fail too. Sorted; empty for more than `MAX_NAMES` names. What could not be run is stable.
    """
    if not 0 < len(names) <= MAX_NAMES:
        return ()
    found: set[str] = set()
    failing = tuple(sorted(names))
    for again, counts in ((here, True), (base, False)):
        for _ in range(TIMES):
            if failing:
                passed = again(failing)
                found.update(name for name in failing if passed.get(name) is counts)
                failing = tuple(name for name in failing if name in passed and name not in found)
    return tuple(sorted(found))


def rerun_command(run: TestRun, names: Collection[str]) -> str | None:
    """The command of `run` for these tests alone, or None where it cannot be told how.

    Only for a plain pytest command (no pipes, no make or tox around it), and only for names that are node ids.
    """
    if run.report.runner != "pytest" or SHELL.search(run.command) or any("…" in name for name in names):
        return None
    try:
        words = shlex.split(run.command)
    except ValueError:
        return None
    start = next(
        (i for i, word in enumerate(words) if re.fullmatch(r"(?:.*/)?(?:pytest|py\.test)", word)), None
    )
    if start is None:
        return None
    kept = words[: start + 1]
    for previous, word in zip(words[start:], words[start + 1 :], strict=False):
        if word.startswith("-") or VALUED.fullmatch(previous):
            kept.append(word)
    return shlex.join([*kept, *names])


def passed_again(run: TestRun, names: Collection[str]) -> dict[str, bool]:
    """Which of the tests a run of `rerun_command` says to pass; without those that are not among its outcomes."""
    if not run.report.whole:
        return {}
    return {name: run.report.outcomes[name] not in RED for name in names if name in run.report.outcomes}
