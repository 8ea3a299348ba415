"""The beginning that the prompts of all judgments share: the task, its focus, and what failed."""

from collections.abc import Sequence

from clean_room_agent.artifacts.evidence import Evidence, FailingTest
from clean_room_agent.artifacts.package import quoted
from clean_room_agent.artifacts.prompt_sources import PromptSource, SourcedText, compose, joined, sourced
from clean_room_agent.artifacts.tasks import ContextRequest, RefinementRequest

MAX_LISTED = 6
"""Messages shown."""
MAX_GROUPS = 4
"""Different failures shown; of the rest, the number of tests."""
MAX_VALUE = 200
"""Characters of a message, a statement or a value; longer ones are cut."""


def question_text(request: ContextRequest, missing: RefinementRequest | None = None) -> SourcedText:
    """Task, focus, evidence and what a failed attempt missed, under headings; no newline at the end."""
    task, focus = request.task.strip(), request.focus.strip()
    parts = [("## Task\n", sourced(task, PromptSource.TASK))]
    if focus not in {"", task}:
        parts.append(("## The part of it to do now\n", sourced(focus, PromptSource.PART)))
    if evidence := evidence_text(request.evidence):
        parts.append(("## What the tests show now\n", sourced(evidence, PromptSource.EVIDENCE)))
    if missing is not None:
        words = (missing.reason, *missing.error_signatures[:MAX_LISTED])
        said = "\n".join(word.strip() for word in words if word.strip())
        parts.append(("## What an earlier attempt missed\n", sourced(said, PromptSource.FAILURE)))
    return joined("\n\n", map(compose, parts))


def evidence_text(evidence: Evidence) -> str:
    """The failing tests in a few lines each, those with the same failure together. Without test names, the messages; ""
    where there is neither.
    """
    if not evidence.tests:
        return "\n".join(dict.fromkeys(_short(message) for message in evidence.messages[:MAX_LISTED]))
    groups: dict[tuple[str, ...], list[FailingTest]] = {}
    for test in evidence.tests:
        key = (test.statement, test.expected, test.actual, test.message)
        groups.setdefault(key, []).append(test)
    lines = [line for group in list(groups.values())[:MAX_GROUPS] for line in _group_lines(group)]
    left = sum(len(group) for group in list(groups.values())[MAX_GROUPS:])
    return "\n".join((*lines, *([f"({left} more failing tests)"] if left else [])))


def _group_lines(group: Sequence[FailingTest]) -> list[str]:
    test = group[0]
    lines = [f"failing test: {quoted(test.name)}"]
    if test.statement:
        lines.append(f"  line: {_short(test.statement)}")
    if test.expected or test.actual:
        lines += [f"  expected: {_short(test.expected)}", f"  actual: {_short(test.actual)}"]
    elif test.message:
        lines.append(f"  {_short(test.message)}")
    if len(group) > 1:
        lines.append(f"  {len(group) - 1} more fail in the same way")
    return lines


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_VALUE else f"{line[:MAX_VALUE]} [cut]"
