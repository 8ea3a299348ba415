"""The lines of a recorded prompt, each with where it comes from: read from the spans that were recorded with the call."""

from collections.abc import Iterable

from msgspec import Struct

from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.artifacts.prompt_sources import PromptSource, PromptSpan

BEFORE_SPANS = "recorded before spans were kept"
"""What is said about a call for which the origin of its lines is not recorded."""
CODE = frozenset({PromptSource.FILE, PromptSource.OUTLINE, PromptSource.FRAME, PromptSource.CANDIDATE})
"""Lines about code of the repository."""
SHOWN = frozenset({PromptSource.FILE, PromptSource.OUTLINE})
"""Lines of code, or of outlines of code."""


class PromptLine(Struct, frozen=True, kw_only=True):
    """One line of a prompt, and where it comes from."""

    line: int
    """1-based, in the prompt."""
    text: str
    kind: PromptSource
    section: str = ""
    """The heading above it; "" before the first."""
    path: str = ""
    """Of the file that it shows or names; "" if it is not about a file."""
    symbol: str = ""
    file_line: int | None = None
    """1-based, in that file as it was then; None if the line is not one of the file's."""


def prompt_lines(call: ModelCall) -> tuple[PromptLine, ...] | None:
    """Every line of the call's prompt, in order; None if the record does not have their origin."""
    if call.request.spans is None:
        return None
    spans = _by_line(call.request.spans)
    found: list[PromptLine] = []
    section = ""
    for number, text in enumerate(call.request.prompt.split("\n"), start=1):
        span = spans.get(number)
        if span is None:
            section = text.lstrip("# ") if text.startswith("#") else section
            found.append(PromptLine(line=number, text=text, kind=PromptSource.RULES, section=section))
            continue
        found.append(
            PromptLine(
                line=number,
                text=text,
                kind=span.source,
                section=section,
                path=span.path,
                symbol=span.symbol,
                file_line=span.from_line(number).number if span.path else None,
            )
        )
    return tuple(found)


def _by_line(spans: Iterable[PromptSpan]) -> dict[int, PromptSpan]:
    return {line: span for span in spans for line in range(span.first, span.last + 1)}


def framed(spans: Iterable[PromptSpan]) -> tuple[PromptSpan, ...]:
    """The spans between the first and the last line of each frame, one for each framed piece."""
    found: list[PromptSpan] = []
    inside = False
    for span in spans:
        if span.source is PromptSource.FRAME:
            inside = not inside
        elif inside and found and _continues(found[-1], span):
            found[-1] = found[-1]._replace(last=span.last)
        elif inside:
            found.append(span)
    return tuple(found)


def _continues(before: PromptSpan, span: PromptSpan) -> bool:
    """Whether the span continues the piece of the one before it."""
    same = (before.source, before.path, before.symbol) == (span.source, span.path, span.symbol)
    return same and before.from_line(span.first) == span._replace(last=before.last)


def grouped(lines: Iterable[PromptLine]) -> list[tuple[PromptLine, PromptLine]]:
    """First and last line of each run of lines with the same origin; consecutive lines of one file are one run."""
    groups: list[tuple[PromptLine, PromptLine]] = []
    for line in lines:
        if groups and _goes_on(groups[-1][1], line):
            groups[-1] = (groups[-1][0], line)
        else:
            groups.append((line, line))
    return groups


def _goes_on(before: PromptLine, line: PromptLine) -> bool:
    if (before.kind, before.section) != (line.kind, line.section):
        return False
    return line.kind not in SHOWN or (before.path, before.symbol) == (line.path, line.symbol)
