"""Why a line is in a prompt: what kind of line it is, the line of the file that it shows, and the decisions about that file."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Group
from rich.text import Text

from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.artifacts.names import call_place, counted
from clean_room_agent.artifacts.prompt_sources import PromptSource, PromptSpan
from clean_room_agent.db.raw.calls import get_call
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import UsageError
from clean_room_agent.report.decisions import PassVerdicts, lines_of, verdicts_about
from clean_room_agent.report.trace import PassTrace, RunTrace, choose, context_passes

BEFORE_SPANS = "recorded before spans were kept"
"""What is said about a call for which the origin of its lines is not recorded."""
CODE = frozenset({PromptSource.FILE, PromptSource.OUTLINE, PromptSource.FRAME, PromptSource.CANDIDATE})
"""Lines about code of the repository."""
SHOWN = frozenset({PromptSource.FILE, PromptSource.OUTLINE})
"""Lines of code, or of outlines of code."""


class LineRange(Struct, frozen=True, kw_only=True):
    """Consecutive lines of a prompt with the same origin, or one line."""

    first: int
    """1-based, in the prompt, as `last`."""
    last: int
    text: str
    """Of the first."""
    kind: PromptSource
    section: str = ""
    """The heading above it; "" before the first."""
    path: str = ""
    """Of the file that the lines show or name; "" if they are not about a file."""
    symbol: str = ""
    file_first: int | None = None
    """1-based, in that file as it was then, as `file_last`; None if the lines are not those of a file."""
    file_last: int | None = None


def prompt_lines(call: ModelCall) -> tuple[LineRange, ...] | None:
    """Every line of the call's prompt, in order; None if the record does not have their origin."""
    if call.request.spans is None:
        return None
    spans = {line: span for span in call.request.spans for line in range(span.first, span.last + 1)}
    found: list[LineRange] = []
    section = ""
    for number, text in enumerate(call.request.prompt.split("\n"), start=1):
        span = spans.get(number)
        if span is None:
            section = text.lstrip("# ") if text.startswith("#") else section
            source = PromptSource.RULES
            of_file: dict[str, Any] = {}
        else:
            line = span.from_line(number).number if span.path else None
            of_file = {"path": span.path, "symbol": span.symbol, "file_first": line, "file_last": line}
            source = span.source
        found.append(LineRange(first=number, last=number, text=text, kind=source, section=section, **of_file))
    return tuple(found)


def framed(spans: Iterable[PromptSpan]) -> tuple[PromptSpan, ...]:
    """The spans between the first and the last line of each frame, one for each framed piece."""
    found: list[PromptSpan] = []
    inside = False
    for span in spans:
        if span.source is PromptSource.FRAME:
            inside = not inside
        elif inside and found and _is_continuation(found[-1], span):
            found[-1] = found[-1]._replace(last=span.last)
        elif inside:
            found.append(span)
    return tuple(found)


def _is_continuation(before: PromptSpan, span: PromptSpan) -> bool:
    """Whether the span continues the piece of the one before it."""
    same = (before.source, before.path, before.symbol) == (span.source, span.path, span.symbol)
    return same and before.from_line(span.first) == span._replace(last=before.last)


def grouped(lines: Iterable[LineRange]) -> tuple[LineRange, ...]:
    """Each run of lines with the same origin; consecutive lines of one file are one run."""
    groups: list[LineRange] = []
    for line in lines:
        if groups and _goes_on(groups[-1], line):
            groups[-1] = replace(groups[-1], last=line.last, file_last=line.file_last)
        else:
            groups.append(line)
    return tuple(groups)


def _goes_on(before: LineRange, line: LineRange) -> bool:
    if (before.kind, before.section) != (line.kind, line.section):
        return False
    return line.kind not in SHOWN or (before.path, before.symbol) == (line.path, line.symbol)


WORDS: Mapping[PromptSource, str] = {
    PromptSource.RULES: "the prompt's own words",
    PromptSource.EXAMPLE: "the prompt's example of an answer",
    PromptSource.TASK: "the task, as it was given",
    PromptSource.FILE: "a line of a file",
    PromptSource.OUTLINE: "a signature with its description, or a place that uses or exercises code, from the index",
    PromptSource.FRAME: "the line before or after a piece of code",
    PromptSource.CANDIDATE: "a candidate, as shown to be judged",
    PromptSource.PART: "the plan that divides the task into parts",
    PromptSource.STEP: "the plan that divides the part into steps",
    PromptSource.CONSTRAINT: "what the plan of the part says beyond its steps",
    PromptSource.DRAFT: "an unfinished plan, from earlier answers of the same pass",
    PromptSource.EVIDENCE: "what the tests showed",
    PromptSource.FAILURE: "how an earlier step or attempt failed",
    PromptSource.DIFF: "what the run changed before",
    PromptSource.ATTEMPT: "an earlier attempt at the step",
    PromptSource.REFUSED: "an earlier answer, and what was wrong with it",
    PromptSource.HINT: "the user's hint",
    PromptSource.FIGURES: "figures from the record",
}


class PromptWhy(Struct, frozen=True, kw_only=True):
    """The composition of a prompt, or where one line of it comes from."""

    call_id: int
    place: str
    call_type: str
    ranges: tuple[LineRange, ...]
    """One alone if the question was about one line."""
    commit: str = ""
    """Of the tree whose file the one line shows; "" if it shows none."""
    decisions: tuple[PassVerdicts, ...] = ()
    """Those that included or judged the file of the one line, with their calls."""


def lines_of_call(call: ModelCall) -> tuple[LineRange, ...]:
    """The call's prompt, line by line.

    Raises:
        UsageError: it was recorded before the origin of lines was stored.
    """
    lines = prompt_lines(call)
    if lines is None:
        raise UsageError(
            f"call {call.id} was {BEFORE_SPANS}: where the lines of its prompt come from is not known",
            hint=f"`cra show RUN/call:{call.id} --prompt` shows it as it was sent",
        )
    return lines


def prompt_why(conn: Connection, trace: RunTrace, call_id: int, line: int | None = None) -> PromptWhy:
    """The composition of the call's prompt, from its first line to its last; or where line `line` (1-based) comes from.

    Raises:
        UsageError: the task made no such call, or its prompt has fewer lines.
    """
    entry, call = _call_with_pass(conn, trace, call_id)
    lines = lines_of_call(call)
    about: dict[str, Any] = {"call_id": call_id, "place": entry.place, "call_type": call.site.call_type}
    if line is None:
        return PromptWhy(**about, ranges=grouped(lines))
    if not 1 <= line <= len(lines):
        size = counted(len(lines), "line")
        raise UsageError(f"the prompt of call {call_id} has {size}, and no line {line}")
    origin = lines[line - 1]
    symbols = (None, *origin.symbol.split(", ")) if origin.symbol else ()
    is_code = origin.kind in CODE and origin.path
    return PromptWhy(
        **about,
        ranges=(origin,),
        commit=_context_commit(trace, entry) if origin.kind in SHOWN else "",
        decisions=verdicts_about(context_passes(trace, entry), origin.path, symbols) if is_code else (),
    )


def render_prompt_why(found: PromptWhy) -> Group:
    """A line for each run of lines with one origin."""
    lines = [Text(f"call {found.call_id}: {found.call_type} {found.place}".rstrip(), style="bold")]
    for part in found.ranges:
        span = f"{part.first}" if part.first == part.last else f"{part.first}-{part.last}"
        what = "" if part.kind in SHOWN else part.section
        if part.kind in SHOWN and part.path:
            what = f"{part.path}:{part.file_first}-{part.file_last}" if part.file_first else part.path
            what += f" ({part.symbol})" if part.symbol else ""
        lines.append(Text.assemble(f"{span:>11}  ", (f"{part.kind:<9}", "cyan"), f" {what}".rstrip()))
    return Group(*lines)


def render_line_why(found: PromptWhy) -> Group:
    """Where the one line comes from, for a person."""
    (line,) = found.ranges
    head = f"call {found.call_id} ({found.call_type}), line {line.first}: {line.text.strip()}"
    section = f", under {line.section!r}" if line.section else ""
    lines = [Text(head, style="bold"), Text(f"  {WORDS[line.kind]}{section}")]
    if line.path:
        place = line.path if line.file_first is None else f"{line.path}:{line.file_first}"
        symbol = f" ({line.symbol})" if line.symbol else ""
        commit = f", as of commit {found.commit[:10]}" if found.commit else ""
        lines.append(Text(f"  {place}{symbol}{commit}", style="cyan"))
    if found.decisions:
        lines.append(Text("  it is there because of:"))
        lines += [text for entry in found.decisions for text in lines_of(entry.decisions, indent=4)]
    return Group(*lines)


def _context_commit(trace: RunTrace, entry: PassTrace) -> str:
    """The commit that the context's files were read from: the last accepted state before the pass's context was made."""
    first = context_passes(trace, entry)[0]
    accepted = [row.commit_hash for found, row in trace.accepted() if found.row.id < first.row.id]
    if accepted:
        return accepted[-1]
    return trace.run.snapshot_commit if trace.run else ""


def _call_with_pass(conn: Connection, trace: RunTrace, call_id: int) -> tuple[PassTrace, ModelCall]:
    """The pass that made the call, as it is in the whole trace, and the call."""
    (chosen,) = choose(trace, call_place(call_id)).passes
    call = get_call(conn, call_id)
    assert call is not None, "a call of the trace is in the record"
    return next(entry for entry in trace.passes if entry.pass_id == chosen.pass_id), call
