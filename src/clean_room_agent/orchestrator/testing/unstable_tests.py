"""Tests that come and go by themselves: what fails newly is run without the others, twice here and twice at the base."""

import re
import shlex
from collections.abc import Callable, Collection, Mapping

from clean_room_agent.orchestrator.testing.results import RED, TestRun

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
    if run.runner != "pytest" or SHELL.search(run.command) or any("…" in name for name in names):
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
    if not run.whole:
        return {}
    return {name: run.outcomes[name] not in RED for name in names if name in run.outcomes}
