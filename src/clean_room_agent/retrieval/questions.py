"""The part that all judgments of one request share: task, focus and evidence as a model reads them."""

from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.tasks import RefinementRequest, RoomRequest

MAX_LISTED = 12
"""Tests, messages and frames shown; how many more there are is said."""


def question_text(request: RoomRequest, missing: RefinementRequest | None = None) -> str:
    """Task, focus, evidence and what a failed attempt missed, under their headings, without a line end at the end."""
    parts = [f"## Task\n{request.task.strip()}"]
    if request.focus.strip():
        parts.append(f"## The part of it to do now\n{request.focus.strip()}")
    evidence = evidence_text(request.evidence)
    if evidence:
        parts.append(f"## What the tests showed\n{evidence}")
    if missing is not None:
        words = (missing.reason, *missing.error_signatures[:MAX_LISTED])
        parts.append(
            "## What an earlier attempt missed\n" + "\n".join(word.strip() for word in words if word.strip())
        )
    return "\n\n".join(parts)


def evidence_text(evidence: Evidence) -> str:
    """The evidence in a few lines; "" where there is none."""
    frames = tuple(f"{frame.path}:{frame.line} {frame.function}".rstrip() for frame in evidence.frames)
    blocks = (
        ("failing test", evidence.failing_tests),
        ("message", evidence.messages),
        ("stack frame", frames),
    )
    lines: list[str] = []
    for label, values in blocks:
        lines.extend(f"{label}: {value.strip()}" for value in values[:MAX_LISTED])
        if len(values) > MAX_LISTED:
            lines.append(f"({len(values) - MAX_LISTED} more {label}s)")
    return "\n".join(lines)
