r"""Where the lines of a prompt come from: a text that knows the source of its lines, and the spans recorded with a
call.

    >>> code = sourced("def go():\n    pass\n", PromptSource.FILE, path="a.py", number=7)
    >>> text = compose(("## Code\n", code, "\nWhat does it do?"))
    >>> text.spans
    (PromptSpan(first=2, last=3, source=<PromptSource.FILE: 'file'>, path='a.py', symbol='', number=7),)

A line in no span is the template's own.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple, Self

from clean_room_agent.artifacts.names import parse_item_name


class PromptSource(StrEnum):
    """What a line of a prompt is, and thereby where it comes from."""

    RULES = "rules"
    """The prompt's own words, which no span covers."""
    EXAMPLE = "example"
    """The example of an answer."""
    TASK = "task"
    """The user's words."""
    FILE = "file"
    """A line of a file, as it is."""
    OUTLINE = "outline"
    """A signature with its description, or a place that uses or tests code."""
    FRAME = "frame"
    """The line before or after a shown piece."""
    CANDIDATE = "candidate"
    """Something to be judged, or that was found or chosen before."""
    PART = "part"
    """Of the plan that divides the task into parts."""
    STEP = "step"
    """Of the plan that divides a part into steps."""
    CONSTRAINT = "constraint"
    """What the plan of a part says besides its steps."""
    DRAFT = "draft"
    """What earlier answers of the same pass say about the unfinished plan."""
    EVIDENCE = "evidence"
    """What the tests showed before the pass."""
    FAILURE = "failure"
    """How an earlier step or attempt failed."""
    DIFF = "diff"
    """What the run changed before."""
    ATTEMPT = "attempt"
    """An earlier attempt at the same step."""
    REFUSED = "refused"
    """An earlier answer that was refused, and why."""
    HINT = "hint"
    """The user's hint to a resumed run."""
    FIGURES = "figures"
    """Counted from the record."""


class PromptSpan(NamedTuple):
    """Consecutive lines of a text from the same source. Lines are 1-based and inclusive."""

    first: int
    last: int
    source: PromptSource
    path: str = ""
    """Of the file that the lines show or name."""
    symbol: str = ""
    """Qualified name of the piece of the file."""
    number: int | None = None
    """Of a file: the number of the first line in it. Of an attempt: which it was, from 1."""

    def from_line(self, line: int) -> "PromptSpan":
        """The rest of the span from this line on."""
        passed = line - self.first
        number = self.number + passed if self.number is not None and self.path else self.number
        return self._replace(first=line, number=number)


class SourcedText(str):
    """A text with the spans of its lines. String operations lose them; `compose` keeps them."""

    __slots__ = ("spans",)
    spans: tuple[PromptSpan, ...]

    def __new__(cls, text: str, spans: tuple[PromptSpan, ...] = ()) -> Self:
        """`spans`: in order, without overlap."""
        made = super().__new__(cls, text)
        made.spans = spans
        return made

    def __str__(self) -> str:
        """The text itself, so that templates, which call `str` on each value, keep its spans."""
        return self


def plain_text(text: SourcedText) -> str:
    """The text without its spans."""
    return str.__str__(text)


def sourced(
    text: str, source: PromptSource, *, path: str = "", symbol: str = "", number: int | None = None
) -> SourcedText:
    """The text with all its lines from one source, except for lines with a known source of their own."""
    lines = _last_line(text)
    whole = PromptSpan(first=1, last=lines, source=source, path=path, symbol=symbol, number=number)
    own = text.spans if isinstance(text, SourcedText) else ()
    spans: list[PromptSpan] = []
    line = 1
    for span in own:
        if line < span.first:
            spans.append(whole.from_line(line)._replace(last=span.first - 1))
        spans.append(span)
        line = span.last + 1
    if line <= lines and text:
        spans.append(whole.from_line(line))
    return SourcedText(text, tuple(spans))


def compose(pieces: Iterable[str]) -> SourcedText:
    """The pieces joined, with their spans; a line shared by two pieces belongs to the first one's span."""
    texts: list[str] = []
    spans: list[PromptSpan] = []
    above = 0
    for piece in pieces:
        if isinstance(piece, SourcedText):
            for span in _shifted_spans(piece.spans, above):
                taken = spans[-1].last if spans else 0
                if span.last > taken:
                    spans.append(span if span.first > taken else span.from_line(taken + 1))
        texts.append(piece)
        above += piece.count("\n")
    return SourcedText("".join(texts), tuple(spans))


def joined(separator: str, pieces: Iterable[str]) -> SourcedText:
    """The pieces with the separator between them."""
    between = (part for piece in pieces for part in (separator, piece))
    return compose(tuple(between)[1:])


def listed(name: str) -> SourcedText:
    """An item's name in a list, with the file or the piece that it names as its source."""
    item = parse_item_name(name)
    return sourced(name, PromptSource.CANDIDATE, path=item.path, symbol=item.symbol)


def stripped(text: SourcedText) -> SourcedText:
    """The text without white space at its ends."""
    kept = text.strip()
    above = text[: len(text) - len(text.lstrip())].count("\n")
    last = kept.count("\n") + 1
    spans = (span for span in _shifted_spans(text.spans, -above) if span.first <= last)
    return SourcedText(kept, tuple(span._replace(last=min(span.last, last)) for span in spans))


def _shifted_spans(spans: Iterable[PromptSpan], lines: int) -> Iterator[PromptSpan]:
    for span in spans:
        yield span._replace(first=span.first + lines, last=span.last + lines)


def _last_line(text: str) -> int:
    """The number of the last line; a line end at the end of the text does not begin another one."""
    return text.count("\n") + (not text.endswith("\n"))


def without_line_end(text: SourcedText) -> SourcedText:
    """The text without its last line break, since a template has its own after each value."""
    return SourcedText(plain_text(text).removesuffix("\n"), text.spans)
