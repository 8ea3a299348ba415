"""Reads what went wrong in a step from its result, without a model.

A failure gets the first of these categories that fits: it did not compile (or import), a test failed, an edit could not
be made, something else broke at run time; otherwise it is unknown. A syntax error that a runner reports for a test
belongs to the first.
"""

import re
from collections.abc import Iterable, Sequence

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.artifacts.plans import MAX_MESSAGE, FailureCategory, FailureSignal

COMPILE = re.compile(
    r"\b(?:SyntaxError|IndentationError|TabError|ImportError|ModuleNotFoundError|ParseError)\b"
    r"|\bSYNTAX\b|\bUNDEFINED\b|no longer parses"
    r"|\berror TS\d+\b|\bERR_MODULE_NOT_FOUND\b|\bTransform failed\b"
    r"|\bCannot find (?:module|package)\b|\bFailed to (?:load url|resolve import|parse)\b"
    r"|\bdoes not provide an export named\b|\bUnexpected (?:token|identifier|end of input)\b"
)
ASSERTION = re.compile(
    r"\bAssertion(?:Error)?\b|\bERR_ASSERTION\b|^\s*(?:E\s+)?assert\b|\bexpect(?:ed|\()|\bnewly failing\b|\bto (?:deeply )?equal\b",
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


def failure_signals(
    outcome: AttemptOutcome,
    detail: str,
    *,
    newly_failing: Sequence[FailingTest] = (),
    messages: Iterable[str] = (),
) -> tuple[FailureSignal, ...]:
    """What went wrong in an attempt that was not accepted; tests that fail with the same message are one failure.

    `newly_failing` are tests that passed before it, `messages` the error lines of its test run, which are used if none
    of its tests has a name. A test that was red before and still is does not count as a failure of the step.
    """
    found: dict[str, FailureSignal] = {}
    for test in newly_failing:
        words = words_of(test)
        found.setdefault(words or test.name, _signal(words, test.name, _category_of_test(words)))
    if found:
        return tuple(found.values())
    said = "\n".join(dict.fromkeys(line.strip() for line in (detail, *messages) if line.strip()))
    return (_signal(said, outcome.value, _category(said, outcome)),)


def words_of(test: FailingTest) -> str:
    """A test's message, with the values that it compared if the message lacks them; "" if there is none."""
    lines = [test.message.strip()]
    if not lines[0] and test.statement:
        lines = [test.statement]
    if test.expected or test.actual:
        shown = [f"expected: {test.expected}", f"actual: {test.actual}"]
        lines += [
            line
            for line, value in zip(shown, (test.expected, test.actual), strict=True)
            if value not in lines[0]
        ]
    return "\n".join(line for line in lines if line)


def _category_of_test(words: str) -> FailureCategory:
    if not words:
        return "unknown"
    return "compile_error" if COMPILE.search(words) else "test_failure"


def _category(words: str, outcome: AttemptOutcome) -> FailureCategory:
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


def _signal(words: str, source: str, category: FailureCategory) -> FailureSignal:
    text = words if len(words) <= MAX_MESSAGE else words[: MAX_MESSAGE - len(CUT)] + CUT
    return FailureSignal(category=category, message=text, source=source)
