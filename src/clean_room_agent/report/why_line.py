"""Why a line is in a prompt: its origin, and the decision, answer, change or test that put it there."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from rich.console import Group
from rich.text import Text

from clean_room_agent.artifacts.model_calls import AnswerReading, CallSummary, ModelCall
from clean_room_agent.artifacts.names import call_place, counted
from clean_room_agent.artifacts.outcomes import PassType
from clean_room_agent.artifacts.prompt_sources import PromptSource
from clean_room_agent.db.raw.calls import get_call
from clean_room_agent.db.raw.passes import AttemptRow
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import UsageError
from clean_room_agent.report.decisions import PassVerdicts, decision_lines
from clean_room_agent.report.prompt_lines import (
    BEFORE_SPANS,
    CODE,
    SHOWN,
    PromptLine,
    grouped,
    prompt_lines,
)
from clean_room_agent.report.trace import PassTrace, RunTrace, choose, context_passes
from clean_room_agent.unified_diff import diff_of_file

PLANNING = frozenset(
    {
        "meta_plan",
        "change_points",
        "part_plan",
        "symbol_targets",
        "step_design",
        "adjustment",
        "adjustment_finalize",
    }
)
"""The prompts whose answers are plans, or drafts of one."""
PLANNED_BY: Mapping[PromptSource, frozenset[PassType]] = {
    PromptSource.PART: frozenset({PassType.META_PLAN}),
    PromptSource.STEP: frozenset({PassType.PART_PLAN, PassType.ADJUST}),
    PromptSource.CONSTRAINT: frozenset({PassType.PART_PLAN}),
}
"""The passes that make the plans from which such lines come."""
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


class LineWhy(Struct, frozen=True, kw_only=True):
    """Everything that the record says about one line of a prompt."""

    call_id: int
    place: str
    call_type: str
    origin: PromptLine
    says: str
    """What kind of line it is, in words."""
    commit: str
    """Of the tree whose file the line shows; "" if it shows none."""
    from_call: int | None
    """The call whose answer the line comes from (a plan, an attempt's edits, a refused answer)."""
    from_place: str
    """The attempt or pass that it comes from; "" if there is none."""
    decisions: tuple[PassVerdicts, ...]
    """The decisions that included or judged its file, with their calls."""


class LineRange(Struct, frozen=True, kw_only=True):
    """Consecutive lines of a prompt with the same origin."""

    first: int
    last: int
    kind: PromptSource
    section: str
    path: str
    symbol: str
    file_first: int | None
    file_last: int | None


class PromptWhy(Struct, frozen=True, kw_only=True):
    """The composition of a whole prompt."""

    call_id: int
    place: str
    call_type: str
    ranges: tuple[LineRange, ...]


def lines_of(call: ModelCall) -> tuple[PromptLine, ...]:
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


def prompt_why(conn: Connection, trace: RunTrace, call_id: int) -> PromptWhy:
    """The composition of the call's prompt, from its first line to its last.

    Raises:
        UsageError: the task made no such call.
    """
    entry, call = _call(conn, trace, call_id)
    return PromptWhy(
        call_id=call_id,
        place=entry.place,
        call_type=call.site.call_type,
        ranges=tuple(
            LineRange(
                first=first.line,
                last=last.line,
                kind=first.kind,
                section=first.section,
                path=first.path if first.kind in SHOWN else "",
                symbol=first.symbol if first.kind in SHOWN else "",
                file_first=first.file_line,
                file_last=last.file_line,
            )
            for first, last in grouped(lines_of(call))
        ),
    )


def line_why(conn: Connection, trace: RunTrace, call_id: int, line: int) -> LineWhy:
    """Where line `line` (1-based) of the call's prompt comes from.

    Raises:
        UsageError: the task made no such call, or its prompt has fewer lines.
    """
    entry, call = _call(conn, trace, call_id)
    lines = lines_of(call)
    if not 1 <= line <= len(lines):
        raise UsageError(
            f"the prompt of call {call_id} has {counted(len(lines), 'line')}, and no line {line}"
        )
    origin = lines[line - 1]
    source = _source(trace, entry, call, origin)
    return LineWhy(
        call_id=call_id,
        place=entry.place,
        call_type=call.site.call_type,
        origin=origin,
        says=WORDS[origin.kind],
        commit=_commit(trace, entry) if origin.kind in SHOWN else "",
        from_call=source.call_id,
        from_place=source.place,
        decisions=_decisions(trace, entry, origin),
    )


def render_prompt_why(found: PromptWhy) -> Group:
    """A line for each run of lines with one origin."""
    lines = [Text(f"call {found.call_id}: {found.call_type} {found.place}".rstrip(), style="bold")]
    for part in found.ranges:
        span = f"{part.first}" if part.first == part.last else f"{part.first}-{part.last}"
        what = f"{part.path}:{part.file_first}-{part.file_last}" if part.file_first else part.path
        if part.symbol:
            what += f" ({part.symbol})"
        section = "" if part.kind in SHOWN else part.section
        lines.append(
            Text.assemble(f"{span:>11}  ", (f"{part.kind:<9}", "cyan"), f" {what or section}".rstrip())
        )
    return Group(*lines)


def render_line_why(found: LineWhy, short: Callable[[str], str]) -> Group:
    """The answer for a person; `short` makes an address within the run into one to type."""
    origin = found.origin
    lines = [
        Text(
            f"call {found.call_id} ({found.call_type}), line {origin.line}: {origin.text.strip()}",
            style="bold",
        ),
        Text(f"  {found.says}" + (f", under {origin.section!r}" if origin.section else "")),
    ]
    if origin.path:
        place = origin.path if origin.file_line is None else f"{origin.path}:{origin.file_line}"
        symbol = f" ({origin.symbol})" if origin.symbol else ""
        commit = f", as of commit {found.commit[:10]}" if found.commit else ""
        lines.append(Text(f"  {place}{symbol}{commit}", style="cyan"))
    if found.from_place:
        lines.append(Text(f"  from {found.from_place}"))
    if found.from_call is not None:
        lines.append(
            Text(
                f"  answered by call {found.from_call}: {short(call_place(found.from_call))} --response",
                style="dim",
            )
        )
    if found.decisions:
        lines.append(Text("  it is there because of:"))
    for entry in found.decisions:
        lines += [line for row in entry.decisions for line in decision_lines(row, indent=4)]
    return Group(*lines)


class _Source(Struct, frozen=True):
    call_id: int | None = None
    place: str = ""


def _source(trace: RunTrace, entry: PassTrace, call: ModelCall, line: PromptLine) -> _Source:
    """Which call, attempt or test run of the task a line of this source comes from."""
    if line.kind in PLANNED_BY:
        return _planned(trace, entry, line.kind)
    if line.kind is PromptSource.DRAFT:
        return _answered(entry, [one for one in entry.calls if one.id < call.id], call.site.call_type)
    if line.kind is PromptSource.REFUSED:
        return _refused(trace, entry, call)
    if line.kind is PromptSource.ATTEMPT:
        return _tried(trace, entry, call, line.attempt)
    return _happened(trace, entry, line)


def _happened(trace: RunTrace, entry: PassTrace, line: PromptLine) -> _Source:
    """The earlier event in the run that the line reports."""
    if line.kind is PromptSource.EVIDENCE:
        return _Source(None, _tested(trace, entry))
    tried: list[tuple[PassTrace, AttemptRow]] = []
    if line.kind is PromptSource.FAILURE:
        tried = [(found, row) for found in _until(trace, entry) for row in found.attempts]
    if line.kind is PromptSource.DIFF:
        tried = [one for one in _accepted_before(trace, entry) if diff_of_file(one[1].diff, line.path)]
    return _Source(tried[-1][1].call_id, tried[-1][0].place) if tried else _Source()


def _until(trace: RunTrace, entry: PassTrace) -> list[PassTrace]:
    """The passes up to this one."""
    return list(trace.passes[: trace.passes.index(entry) + 1])


def _planned(trace: RunTrace, entry: PassTrace, kind: PromptSource) -> _Source:
    """The newest plan of this kind that was made before the pass."""
    part = None if entry.order is None else entry.order.part_id
    wanted = PLANNED_BY[kind]
    plans = [
        found
        for found in _until(trace, entry)
        if found is not entry
        and found.row.success
        and found.order is not None
        and found.order.pass_type in wanted
        and (kind is PromptSource.PART or found.order.part_id == part)
    ]
    return _answered(plans[-1], plans[-1].calls) if plans else _Source()


def _answered(entry: PassTrace, calls: Sequence[CallSummary], asking: str = "") -> _Source:
    """The newest of the pass's calls that gave a plan or a draft of one; otherwise the newest of its other calls."""
    read = [
        one
        for one in calls
        if one.site.call_type != asking
        and one.read is not None
        and one.read.reading is not AnswerReading.UNREADABLE
    ]
    chosen = [one for one in read if one.site.call_type in PLANNING] or read
    return _Source(chosen[-1].id, entry.place) if chosen else _Source(None, entry.place)


def _tried(trace: RunTrace, entry: PassTrace, call: ModelCall, number: int | None) -> _Source:
    """The attempt of this number at the same step; if there is none, the newest one before the call."""
    tries = [
        (found, row)
        for found in context_passes(trace, entry)
        for row in found.attempts
        if (row.call_id or 0) < call.id
    ]
    chosen = [one for one in tries if one[1].attempt == number] or tries
    return _Source(chosen[-1][1].call_id, chosen[-1][0].place) if chosen else _Source()


def _refused(trace: RunTrace, entry: PassTrace, call: ModelCall) -> _Source:
    """The last answer to the same question before the call: in its pass, or else (for a replanned part) in any."""
    for passes in ((entry,), trace.passes):
        asked = [
            (one.id, found.place)
            for found in passes
            for one in found.calls
            if one.site.call_type == call.site.call_type
            and one.site.item == call.site.item
            and one.id < call.id
        ]
        if asked:
            return _Source(*max(asked))
    return _Source()


def _accepted_before(trace: RunTrace, entry: PassTrace) -> list[tuple[PassTrace, AttemptRow]]:
    """The attempts accepted before the pass began, oldest first."""
    return [(found, row) for found, row in trace.accepted() if found.row.id < entry.row.id]


def _tested(trace: RunTrace, entry: PassTrace) -> str:
    """The newest test run before the pass on a state that the run kept: its start, or an accepted change."""
    places = {found.pass_id: found.place for found in trace.passes}
    kept = {row.id for _, row in trace.accepted()} | {None}
    before = [row for row in trace.tests if row.timestamp <= entry.row.timestamp and row.attempt_id in kept]
    return f"{before[-1].kind} tests {places.get(before[-1].task_id, '')}".rstrip() if before else ""


def _commit(trace: RunTrace, entry: PassTrace) -> str:
    """The commit that the context's files were read from: the last accepted state before the pass's context was made."""
    first = context_passes(trace, entry)[0]
    accepted = _accepted_before(trace, first)
    if accepted:
        return accepted[-1][1].commit_hash
    return trace.run.snapshot_commit if trace.run else ""


def _decisions(trace: RunTrace, entry: PassTrace, line: PromptLine) -> tuple[PassVerdicts, ...]:
    """The decisions about the line's file (and symbol, if it has its own) before the call."""
    if line.kind not in CODE or not line.path:
        return ()
    symbols = {None, *line.symbol.split(", ")}
    found = []
    for one in context_passes(trace, entry):
        rows = tuple(row for row in one.decisions if row.subject.path == line.path)
        own = tuple(row for row in rows if not line.symbol or row.subject.symbol in symbols)
        if own:
            found.append(PassVerdicts(place=one.place, decisions=own))
    return tuple(found)


def _call(conn: Connection, trace: RunTrace, call_id: int) -> tuple[PassTrace, ModelCall]:
    chosen = choose(trace, call_place(call_id))
    call = get_call(conn, call_id)
    assert call is not None, "a call of the trace is in the record"
    return chosen.passes[0], call
