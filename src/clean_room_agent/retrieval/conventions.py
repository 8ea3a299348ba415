"""The repository's instructions for agents (AGENTS.md and the like): the sections on writing code that fit a prompt."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence

from clean_room_agent.artifacts.context import Subject
from clean_room_agent.retrieval.pieces import joined_spans
from clean_room_agent.retrieval.retrieval_config import ConventionsConfig
from clean_room_agent.retrieval.stage import Decision, Selection
from clean_room_agent.retrieval.stage_source import RepositorySource

STAGE = "conventions"
HEADING = re.compile(r"#{1,6} +(?P<title>\S.*)")
CODE_FENCE = re.compile(r" {0,3}(```|~~~)")
ABOUT_CODE = re.compile(
    r"(?i)\b(?:style|convention|guideline|rule|principle|naming|format|lint|typ(?:e|ing)|cod(?:e|ing)|pattern|structure"
    r"|architecture|import|error|test|docstring|comment|language)"
)
"""Titles of sections that are likely to be about writing code rather than, say, making a release."""

Lines = tuple[int, int]
"""First and last, 1-based, inclusive."""


def find_conventions(
    source: RepositorySource, config: ConventionsConfig
) -> tuple[tuple[Selection, ...], tuple[Decision, ...]]:
    """Select the first of the configured files that exists, entirely or by the sections that fit.

    Sections whose titles are about code come first. None is cut, except the first if it alone is too long. The second
    result is a note for the record.

    Raises:
        RepositoryError: the file differs from what was indexed.
    """
    if not config.max_tokens:
        return (), ()
    for path in config.files:
        text = source.text(path)
        if text is None or not any(line.strip() for line in text.lines):
            continue
        chosen = _fitting_sections(
            text.lines, lambda lines: source.count("\n".join(lines)), config.max_tokens
        )
        shown = sum(last - first + 1 for first, last in chosen)
        part = "" if shown == len(text.lines) else f"; {shown} of its {len(text.lines)} lines"
        reason = f"what the repository tells agents{part}"
        if not chosen:
            note = f"{reason}: no line fits into {config.max_tokens} tokens"
            return (), (Decision(stage=STAGE, subject=Subject(path=path, tier=1), reason=note),)
        selections = (
            Selection(
                path=path,
                start_line=first,
                end_line=last,
                detail="supporting",
                section="conventions",
                tier=1,
                score=1.0,
                reason=reason,
            )
            for first, last in chosen
        )
        return tuple(selections), ()
    return (), ()


def sections_of(lines: Sequence[str]) -> tuple[tuple[str, Lines], ...]:
    """(title, lines) of each section of a Markdown text in order; text before the first heading has the title ""."""
    starts = [(1, "")]
    fenced = False
    for number, line in enumerate(lines, start=1):
        fenced ^= CODE_FENCE.match(line) is not None
        heading = None if fenced else HEADING.match(line)
        if heading is not None:
            starts.append((number, heading["title"]))
    ends = [start - 1 for start, _ in starts[1:]] + [len(lines)]
    return tuple(
        (title, (start, end)) for (start, title), end in zip(starts, ends, strict=True) if end >= start
    )


def _fitting_sections(lines: Sequence[str], count: Callable[[Sequence[str]], int], most: int) -> list[Lines]:
    if count(lines) <= most:
        return [(1, len(lines))]
    sections = sections_of(lines)
    about_code = [span for title, span in sections if ABOUT_CODE.search(title)]
    chosen: list[Lines] = []
    left = most
    for first, last in (*about_code, *(span for _, span in sections if span not in about_code)):
        size = count(lines[first - 1 : last])
        if size <= left:
            chosen.append((first, last))
            left -= size
        elif not chosen:
            fitting = bisect_right(
                range(first, last + 1), most, key=lambda end: count(lines[first - 1 : end])
            )
            return [(first, first + fitting - 1)] if fitting else []
    return joined_spans(sorted(chosen), gap=1)
