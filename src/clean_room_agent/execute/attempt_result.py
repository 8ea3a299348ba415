"""What came of an attempt at a step: described for the next attempt's prompt, and, if it failed, why, read without a model.

A failure gets the first of these categories that fits: it did not compile (or import), a test failed, an edit could not
be made, something else broke at run time; otherwise it is unknown. A syntax error that a runner reports for a test
belongs to the first.
"""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from clean_room_agent.artifacts.evidence import (
    MOST_CHARACTERS,
    Evidence,
    FailingTest,
    describe_evidence,
    describe_tests,
)
from clean_room_agent.artifacts.outcomes import AttemptOutcome

if TYPE_CHECKING:  # what judges a baseline describes no failure, and begins without pydantic
    from clean_room_agent.artifacts.plans import FailureCategory, FailureSignal

GoalState = Literal["passes now", "fails as before", "fails in another way", "did not run"]
MAX_LISTED = 10
"""Tests of one state."""
LISTED_SHARE = 10
"""The names of the tests of one state get at most one part in so many of the bound."""
COMPILE = re.compile(
    r"\b(?:SyntaxError|IndentationError|TabError|ImportError|ModuleNotFoundError|ParseError)\b"
    r"|\bSYNTAX\b|\bUNDEFINED\b|no longer parses"
    r"|\berror TS\d+\b|\bERR_MODULE_NOT_FOUND\b|\bTransform failed\b"
    r"|\bCannot find (?:module|package)\b|\bFailed to (?:load url|resolve import|parse)\b"
    r"|\bdoes not provide an export named\b|\bUnexpected (?:token|identifier|end of input)\b"
)
ASSERTION = re.compile(
    r"\bAssertion(?:Error)?\b|\bERR_ASSERTION\b|^\s*(?:E\s+)?assert\b|\bexpect(?:ed|\()|\bnewly failing\b|^missing: |\bto (?:deeply )?equal\b",
    re.MULTILINE | re.IGNORECASE,
)
PATCH = re.compile(
    r"\b(?:NO_MATCH|AMBIGUOUS|WRONG_FILE|ELISION|OVERLAP|TRUNCATED|NO_CHANGE|PROTECTED|NO_DEFINITION)\b|nothing was applied|held no edit"
)
RUNTIME = re.compile(
    r"\b[A-Z]\w*(?:Error|Exception|Exit|Interrupt)\b|\bTraceback\b|\btimed out\b|\bSegmentation fault\b|\bSIG(?:SEGV|KILL|ABRT)\b"
    r"|\bexit(?:s|ed)? (?:code |with )|\bpanic\b",
    re.IGNORECASE,
)
PATCH_OUTCOMES = frozenset(
    {AttemptOutcome.NO_EDITS, AttemptOutcome.UNREADABLE, AttemptOutcome.TRUNCATED, AttemptOutcome.REFUSED}
)
RUN_OUTCOMES = frozenset({AttemptOutcome.TIMED_OUT, AttemptOutcome.INFRASTRUCTURE})
CUT = " [cut]"


class Goal(Struct, frozen=True, kw_only=True):
    """A test that failed before the step, and how it ends now."""

    name: str
    state: GoalState
    failing: FailingTest | None = None
    """As it fails now."""


class TestedAttempt(Struct, frozen=True, kw_only=True):
    """What the tests showed after an attempt, compared with before the step."""

    __test__ = False

    reason: str
    """The gate's reason, in one line."""
    goals: tuple[Goal, ...]
    """The tests that failed before the step."""
    newly_failing: tuple[FailingTest, ...] = ()
    """Passed before the step."""
    new: tuple[FailingTest, ...] = ()
    """Did not run before the step, and fail."""
    missing: tuple[str, ...] = ()
    """Passed before the step, and did not run."""
    after: Evidence
    """All that the tests show."""


def describe_result(tested: TestedAttempt, *, bound: int = MOST_CHARACTERS) -> str:
    """The reason, the state of each goal test, and each newly or differently failing test with its message."""
    listed = bound // LISTED_SHARE
    lines = [f"The edits were applied and tested: {tested.reason}.", *_goal_lines(tested.goals, listed)]
    if tested.missing:
        lines.append(f"Did not run, and passed before: {_first_names(tested.missing, listed)}")
    shown = [
        *(("Newly failing test", test) for test in tested.newly_failing),
        *(("Failing test, which did not run before", test) for test in tested.new),
        *(
            ("Goal test, which fails in another way now", goal.failing)
            for goal in tested.goals
            if goal.failing
        ),
    ]
    left = bound - sum(len(line) + 1 for line in lines)
    if shown:
        lines.append(describe_tests(shown, bound=left))
    elif not tested.goals:
        lines.append(describe_evidence(tested.after, bound=left))
    return "\n".join(filter(None, lines))


def _goal_lines(goals: Sequence[Goal], listed: int) -> list[str]:
    if not goals:
        return []
    states: dict[GoalState, list[str]] = {}
    for goal in goals:
        states.setdefault(goal.state, []).append(goal.name)
    passing = len(states.get("passes now", ()))
    lines = [f"Goal tests (they failed before this step): {passing} of {len(goals)} pass now."]
    return lines + [f"- {state}: {_first_names(names, listed)}" for state, names in states.items()]


def _first_names(names: Sequence[str], most: int) -> str:
    """The first names, in about `most` characters, and how many more there are."""
    shown: list[str] = []
    for name in names[:MAX_LISTED]:
        if shown and sum(map(len, shown)) + len(name) > most:
            break
        shown.append(name)
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ", ".join(shown) + more


def failure_signals(
    outcome: AttemptOutcome,
    detail: str,
    *,
    newly_failing: Sequence[FailingTest] = (),
    messages: Iterable[str] = (),
) -> "tuple[FailureSignal, ...]":
    """What went wrong in an attempt that was not accepted; tests that fail with the same message are one failure.

    `newly_failing` are tests that passed before it, `messages` the error lines of its test run, which are used if none
    of its tests has a name. A test that was red before and still is does not count as a failure of the step.
    """
    found: dict[str, FailureSignal] = {}
    for test in newly_failing:
        words = words_of(test)
        found.setdefault(words or test.name, _failure_signal(words, test.name, _category_of_test(words)))
    if found:
        return tuple(found.values())
    said = "\n".join(dict.fromkeys(line.strip() for line in (detail, *messages) if line.strip()))
    return (_failure_signal(said, outcome.value, _failure_category(said, outcome)),)


def words_of(test: FailingTest) -> str:
    """A test's message, with the values that it compared if the message lacks them; "" if there is none."""
    said = test.message.strip() or test.statement
    values = {"expected": test.expected, "actual": test.actual} if test.expected or test.actual else {}
    lines = (said, *(f"{name}: {value}" for name, value in values.items() if value not in said))
    return "\n".join(filter(None, lines))


def _category_of_test(words: str) -> "FailureCategory":
    if not words:
        return "unknown"
    return "compile_error" if COMPILE.search(words) else "test_failure"


def _failure_category(words: str, outcome: AttemptOutcome) -> "FailureCategory":
    if not words:
        return "unknown"
    if outcome is AttemptOutcome.IMPORT_BROKEN or COMPILE.search(words):
        return "compile_error"
    if outcome in PATCH_OUTCOMES:
        return "patch_failure"
    if outcome in RUN_OUTCOMES:
        return "runtime_error"
    fitting: tuple[tuple[FailureCategory, re.Pattern[str]], ...] = (
        ("test_failure", ASSERTION),
        ("patch_failure", PATCH),
        ("runtime_error", RUNTIME),
    )
    return next((category for category, pattern in fitting if pattern.search(words)), "unknown")


def _failure_signal(words: str, source: str, category: "FailureCategory") -> "FailureSignal":
    from clean_room_agent.artifacts.plans import MAX_MESSAGE, FailureSignal

    text = words if len(words) <= MAX_MESSAGE else words[: MAX_MESSAGE - len(CUT)] + CUT
    return FailureSignal(category=category, message=text, source=source)
