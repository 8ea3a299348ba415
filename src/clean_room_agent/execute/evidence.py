"""What the tests showed, in words for a prompt."""

from clean_room_agent.artifacts.evidence import Evidence, StackFrame

MAX_TESTS = 10
MAX_MESSAGES = 10
MAX_FRAMES = 10


def describe_evidence(evidence: Evidence) -> str:
    """The first failing tests, messages and stack frames, as they are given, with a count of what is left out."""
    groups = (
        ("Failing tests", evidence.failing_tests, MAX_TESTS),
        ("Messages", evidence.messages, MAX_MESSAGES),
        ("Places in the stack traces", tuple(map(_frame, evidence.frames)), MAX_FRAMES),
    )
    lines = []
    for title, entries, limit in groups:
        if entries:
            lines.append(f"{title}:")
            lines += [f"- {entry}" for entry in entries[:limit]]
        if len(entries) > limit:
            lines.append(f"- and {len(entries) - limit} more")
    return "\n".join(lines)


def _frame(frame: StackFrame) -> str:
    place = f"{frame.path}:{frame.line}" if frame.line else frame.path
    return f"{place} in {frame.function}" if frame.function else place
