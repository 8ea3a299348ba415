"""Tests that come and go by themselves: each newly failing test is run alone, twice here and twice at the base."""

import re
import shlex
from collections.abc import Callable, Sequence

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

RunAlone = Callable[[str], bool | None]
"""Runs one test alone: whether it passed; None when it could not be run."""


def unstable(names: Sequence[str], here: RunAlone, base: RunAlone) -> tuple[str, ...]:
    """Those of `names` (newly failing) that are unstable: alone, they do not fail each time here, or at the base,
    where they passed, they fail too. Sorted; empty for more than `MAX_NAMES` names. What could not be run is stable.
    """
    if len(names) > MAX_NAMES:
        return ()
    return tuple(name for name in sorted(names) if _is_unstable(name, here, base))


def _is_unstable(name: str, here: RunAlone, base: RunAlone) -> bool:
    for _ in range(TIMES):
        passed = here(name)
        if passed is None:
            return False
        if passed:
            return True
    return any(base(name) is False for _ in range(TIMES))


def rerun_command(run: TestRun, test_name: str) -> str | None:
    """The command of `run` for one test alone, or None where it cannot be told how.

    Only for a plain pytest command (no pipes, no make or tox around it), and only for names that are node ids.
    """
    if run.runner != "pytest" or "…" in test_name or SHELL.search(run.command):
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
    return shlex.join([*kept, test_name])


def passed_alone(run: TestRun, test_name: str) -> bool | None:
    """What a run of `rerun_command` says of the test; None when the test is not among its outcomes."""
    outcome = run.outcomes.get(test_name)
    if not run.whole or outcome is None:
        return None
    return outcome not in RED
