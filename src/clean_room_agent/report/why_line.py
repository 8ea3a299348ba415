"""Why a line stands in a prompt: what it comes from, and the decision, answer, change or test that brought it there."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.text import Text

from clean_room_agent.artifacts.ids import call_place
from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.db.raw.attempts import AttemptRow, ValidationRow
from clean_room_agent.db.raw.calls import get_call, list_calls
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import UsageError
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.report.decisions import PassVerdicts, decision_lines
from clean_room_agent.report.prompt_lines import Kind, PromptLine, grouped, prompt_lines
from clean_room_agent.report.trace import PassTrace, RunTrace, choose, context_passes

NAME = re.compile(r"[\w./-]{3,}")
EVIDENCE_LABEL = re.compile(
    r"- |at |(?:Failing test|failing line|expected|actual|error|also fails in the same way): ?"
)
"""What a line of the evidence begins with; behind it stands what the tests printed."""
PLANNERS = frozenset({"meta_plan", "part_plan", "adjustment"})
WORDS: Mapping[Kind, str] = {
    "template": "the prompt's own words",
    "task": "the task, as it was given",
    "file": "a line of a file",
    "outline": "a signature with its description, or a place that uses or exercises code, from the index",
    "candidate": "a candidate, as whoever judges it is shown it",
    "plan": "a plan",
    "evidence": "what the tests showed",
    "diff": "what the run changed before",
    "attempt": "an earlier attempt at the step",
    "answer": "an earlier answer, and what was wrong with it",
    "hint": "the user's hint",
    "unknown": "nothing that the record knows",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LineWhy:
    """All that the record says about one line of a prompt."""

    call_id: int
    place: str
    call_type: str
    origin: PromptLine
    says: str
    """What kind of line it is, in words."""
    commit: str
    """Of the tree whose file the line shows; "" where it shows none."""
    from_call: int | None
    """The call whose answer the line comes from (a plan, an attempt's edits, a refused answer)."""
    from_place: str
    """The attempt or pass that it comes from; "" where there is none."""
    decisions: tuple[PassVerdicts, ...]
    """What let its file in, or judged it, with the calls that did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRange:
    """Lines of a prompt that follow one another and have one origin."""

    first: int
    last: int
    kind: Kind
    section: str
    path: str
    symbol: str
    file_first: int | None
    file_last: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptWhy:
    """What a whole prompt is made of."""

    call_id: int
    place: str
    call_type: str
    ranges: tuple[LineRange, ...]


def lines_of(
    call: ModelCall, trace: RunTrace, prompts: Mapping[str, Prompt[Any, Any]]
) -> tuple[PromptLine, ...]:
    """The call's prompt, line by line."""
    task = trace.run.task_description if trace.run else ""
    entries = (entry for entry in trace.passes if entry.pass_id == call.site.pass_id)
    paths = {
        row.path for entry in entries for found in context_passes(trace, entry) for row in found.decisions
    }
    return prompt_lines(call.request.prompt, prompts.get(call.site.call_type), task, paths - {""})


def prompt_why(
    conn: Connection, trace: RunTrace, call_id: int, prompts: Mapping[str, Prompt[Any, Any]]
) -> PromptWhy:
    """What the call's prompt is made of, from its first line to its last.

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
                path=first.path if first.kind in {"file", "outline"} else "",
                symbol=first.symbol if first.kind in {"file", "outline"} else "",
                file_first=first.file_line,
                file_last=last.file_line,
            )
            for first, last in grouped(lines_of(call, trace, prompts))
        ),
    )


def line_why(
    conn: Connection, trace: RunTrace, call_id: int, line: int, prompts: Mapping[str, Prompt[Any, Any]]
) -> LineWhy:
    """Where line `line` (1-based) of the call's prompt comes from.

    Raises:
        UsageError: the task made no such call, or its prompt has fewer lines.
    """
    entry, call = _call(conn, trace, call_id)
    lines = lines_of(call, trace, prompts)
    if not 1 <= line <= len(lines):
        raise UsageError(f"the prompt of call {call_id} has {len(lines)} lines, and no line {line}")
    origin = lines[line - 1]
    source = _source(conn, trace, entry, call, origin)
    return LineWhy(
        call_id=call_id,
        place=entry.place,
        call_type=call.site.call_type,
        origin=origin,
        says=WORDS[origin.kind],
        commit=_commit(trace, entry) if origin.kind in {"file", "outline"} else "",
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
        section = "" if part.kind in {"file", "outline"} else part.section
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


@dataclass(frozen=True, slots=True)
class _Source:
    call_id: int | None = None
    place: str = ""


def _source(
    conn: Connection, trace: RunTrace, entry: PassTrace, call: ModelCall, line: PromptLine
) -> _Source:
    words = line.text.strip()
    if line.kind == "plan":
        return _planned(conn, trace, call, words)
    if line.kind == "diff":
        return next(
            (_of(found, row) for found, row in _earlier(trace, entry) if words in row.diff), _Source()
        )
    if line.kind == "attempt":
        tries = [
            (found, row)
            for found in context_passes(trace, entry)
            for row in found.attempts
            if found is not entry
        ]
        return _of(*tries[-1]) if tries else _Source()
    if line.kind == "answer":
        return _refused(trace, entry, call)
    if line.kind == "evidence":
        return _Source(None, _tested(trace, entry, words))
    return _Source()


def _refused(trace: RunTrace, entry: PassTrace, call: ModelCall) -> _Source:
    """The same question's last answer before the call: in its pass, else (a plan made again) in any."""
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


def _planned(conn: Connection, trace: RunTrace, call: ModelCall, words: str) -> _Source:
    """The newest earlier plan whose answer holds the line's words."""
    places = {one.id: entry.place for entry in trace.passes for one in entry.calls}
    for planned in reversed(list_calls(conn, trace.task_id)):
        if (
            planned.id < call.id
            and planned.site.call_type in PLANNERS
            and _holds(planned.answer.response, words)
        ):
            return _Source(planned.id, places.get(planned.id, ""))
    return _Source()


def _holds(answer: str, words: str) -> bool:
    """Whether a JSON answer holds the line, the sentence at its end, or the names that it lists."""
    parts = (words, words.partition(": ")[2])
    if any(json.dumps(part)[1:-1] in answer for part in parts if part):
        return True
    names = [name for name in NAME.findall(words) if name in answer]
    return bool(names)


def _earlier(trace: RunTrace, entry: PassTrace) -> Iterator[tuple[PassTrace, AttemptRow]]:
    """The attempts accepted before the pass began, newest first."""
    accepted = [(found, row) for found, row in trace.accepted() if found.row.id < entry.row.id]
    return iter(reversed(accepted))


def _of(entry: PassTrace, row: AttemptRow) -> _Source:
    return _Source(row.call_id, entry.place)


def _tested(trace: RunTrace, entry: PassTrace, words: str) -> str:
    """The newest test run before the pass that shows something of the line; else the newest that failed."""
    places = {found.pass_id: found.place for found in trace.passes}
    before = [row for row in reversed(trace.tests) if row.timestamp <= entry.row.timestamp]
    shown = [row for row in before if _shows(row, words)] or [row for row in before if not row.success]
    return f"{shown[0].kind} tests {places.get(shown[0].task_id, '')}".rstrip() if shown else ""


def _shows(row: ValidationRow, words: str) -> bool:
    said = EVIDENCE_LABEL.sub("", words, count=1)
    parts = said.partition(": ")
    return any(part and part in row.test_output for part in (said, parts[0], parts[2]))


def _commit(trace: RunTrace, entry: PassTrace) -> str:
    """What the context's files were read from: the last accepted state before the pass's context was made."""
    first = context_passes(trace, entry)[0]
    newest = next(_earlier(trace, first), None)
    if newest is not None:
        return newest[1].commit_hash
    return trace.run.snapshot_commit if trace.run else ""


def _decisions(trace: RunTrace, entry: PassTrace, line: PromptLine) -> tuple[PassVerdicts, ...]:
    """What was decided about the line's file (and symbol, where it has decisions of its own), before its call."""
    if not line.path:
        return ()
    symbols = {None, *line.symbol.split(", ")}
    found = []
    for one in context_passes(trace, entry):
        rows = tuple(row for row in one.decisions if row.path == line.path)
        own = tuple(row for row in rows if not line.symbol or row.symbol in symbols)
        if own:
            found.append(PassVerdicts(place=one.place, decisions=own))
    return tuple(found)


def _call(conn: Connection, trace: RunTrace, call_id: int) -> tuple[PassTrace, ModelCall]:
    chosen = choose(trace, call_place(call_id))
    call = get_call(conn, call_id)
    assert call is not None, "a call of the trace is in the record"
    return chosen.passes[0], call
