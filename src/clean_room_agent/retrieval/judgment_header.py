"""The beginning that the prompts of all judgments share: the task, its focus, and what failed."""

from clean_room_agent.artifacts.context import ContextRequest, RefinementRequest
from clean_room_agent.artifacts.prompt_sources import PromptSource, SourcedText, compose, joined, sourced
from clean_room_agent.evidence_text import LEAST_CHARACTERS, describe_evidence

MAX_ERRORS = 6
"""Of what an earlier attempt missed."""


def question_text(request: ContextRequest, missing: RefinementRequest | None = None) -> SourcedText:
    """Task, focus, evidence and what a failed attempt missed, under headings; no newline at the end."""
    task, focus = request.task.strip(), request.focus.strip()
    parts = [("## Task\n", sourced(task, PromptSource.TASK))]
    if focus not in {"", task}:
        parts.append(("## The part of it to do now\n", sourced(focus, PromptSource.PART)))
    if evidence := describe_evidence(request.evidence, bound=LEAST_CHARACTERS):
        parts.append(("## What the tests show now\n", sourced(evidence, PromptSource.EVIDENCE)))
    if missing is not None:
        words = (missing.reason, *missing.error_signatures[:MAX_ERRORS])
        said = "\n".join(word.strip() for word in words if word.strip())
        parts.append(("## What an earlier attempt missed\n", sourced(said, PromptSource.FAILURE)))
    return joined("\n\n", map(compose, parts))
