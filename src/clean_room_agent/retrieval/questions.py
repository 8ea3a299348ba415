"""The part that all judgments of one request share: task, focus and evidence as a model reads them."""

from collections.abc import Iterable

from clean_room_agent.artifacts.evidence import Evidence, FailingTest
from clean_room_agent.artifacts.tasks import RefinementRequest, RoomRequest

MAX_LISTED = 6
"""Tests, messages and frames shown; how many more there are is said."""
MAX_VALUE = 200
"""Characters of a message, of a statement or of a value; of a longer one the beginning."""


def question_text(request: RoomRequest, missing: RefinementRequest | None = None) -> str:
    """Task, focus, evidence and what a failed attempt missed, under their headings, without a line end at the end."""
    parts = [f"## Task\n{request.task.strip()}"]
    if request.focus.strip() and request.focus.strip() != request.task.strip():
        parts.append(f"## The part of it to do now\n{request.focus.strip()}")
    evidence = evidence_text(request.evidence)
    if evidence:
        parts.append(f"## What the tests show now\n{evidence}")
    if missing is not None:
        words = (missing.reason, *missing.error_signatures[:MAX_LISTED])
        parts.append(
            "## What an earlier attempt missed\n" + "\n".join(word.strip() for word in words if word.strip())
        )
    return "\n\n".join(parts)


def evidence_text(evidence: Evidence) -> str:
    """The failing tests in two or three lines each, or the messages where no test has a name; "" where there is none."""
    lines = [line for test in evidence.tests[:MAX_LISTED] for line in _test_lines(test)]
    if len(evidence.tests) > MAX_LISTED:
        lines.append(f"({len(evidence.tests) - MAX_LISTED} more failing tests)")
    if not evidence.tests:
        lines = [_short(message) for message in evidence.messages[:MAX_LISTED]]
    return "\n".join(once(lines))


def once(lines: Iterable[str]) -> tuple[str, ...]:
    """The lines without repeats, in order."""
    return tuple(dict.fromkeys(lines))


def _test_lines(test: FailingTest) -> list[str]:
    lines = [f"failing test: {test.name}"]
    if test.statement:
        lines.append(f"  line: {_short(test.statement)}")
    if test.expected or test.actual:
        lines += [f"  expected: {_short(test.expected)}", f"  actual: {_short(test.actual)}"]
    elif test.message:
        lines.append(f"  {_short(test.message)}")
    return lines


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_VALUE else f"{line[:MAX_VALUE]} [cut]"
