"""Why a file was shown or changed, or was not: decisions, contexts, attempts, and what wrote a line of the result."""

import difflib
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from rich.console import Group
from rich.text import Text

from clean_room_agent.artifacts.edits import EditReport
from clean_room_agent.artifacts.names import call_place, counted
from clean_room_agent.artifacts.prompt_sources import PromptSource, PromptSpan
from clean_room_agent.db.raw.calls import get_call, list_prompt_spans
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import GitError, UsageError
from clean_room_agent.execute.edits.parse import parse_edits
from clean_room_agent.git.history import read_blob
from clean_room_agent.git.repository import Repository
from clean_room_agent.report.decisions import PassVerdicts, lines_of, verdicts_about
from clean_room_agent.report.prompt_lines import BEFORE_SPANS, SHOWN, framed
from clean_room_agent.report.trace import PassTrace, RunTrace, context_passes
from clean_room_agent.report.validation import counts
from clean_room_agent.unified_diff import diff_of_file

NEAREST = 3


class FileShown(Struct, frozen=True, kw_only=True):
    """A call whose prompt shows or names the file."""

    place: str
    call_id: int
    call_type: str
    pieces: tuple[str, ...]
    """How the context showed it (`file, lines 1-31`), in the order of the prompt; empty where it is only named."""


class FileChanged(Struct, frozen=True, kw_only=True):
    """An attempt whose edits changed the file."""

    place: str
    attempt: int
    outcome: str
    detail: str
    commit: str
    call_id: int | None
    edits: tuple[EditReport, ...]


class LineWritten(Struct, frozen=True, kw_only=True):
    """The attempt that wrote a line of the result."""

    line: int
    """1-based, in the result."""
    text: str | None
    """None if no recorded change shows the line."""
    place: str
    """The attempt that wrote it; "" if it was there before the run."""
    line_then: int
    """Its number after that attempt, or before the run."""
    call_id: int | None = None
    edit: int | None = None
    """1-based, of the answer's edits; None if it is unknown."""
    tier: int = 0
    """The matching tier that placed the edit; 0 if none did."""
    tests: str = ""
    context: tuple[PassVerdicts, ...] = ()
    """The decisions that included the file in the context of that attempt."""


class Why(Struct, frozen=True, kw_only=True):
    """Everything that the record says about one file."""

    path: str
    written: LineWritten | None
    decisions: tuple[PassVerdicts, ...]
    shown: tuple[FileShown, ...]
    unknown: int
    """Calls that were recorded before the contents of prompts were stored."""
    changed: tuple[FileChanged, ...]


def why(conn: Connection, trace: RunTrace, chosen: RunTrace, path: str, line: int | None) -> Why:
    """What the `chosen` part of the task decided about `path`, and which attempt wrote `line` (1-based) of the task's result.

    Raises:
        UsageError: nothing in the part is about this file; the hint names similar ones.
    """
    decisions = verdicts_about(chosen.passes, path)
    spans = list_prompt_spans(conn, trace.task_id)
    shown = tuple(
        FileShown(
            place=entry.place, call_id=call.id, call_type=call.site.call_type, pieces=_shown_pieces(about)
        )
        for entry in chosen.passes
        for call in entry.calls
        if (about := [span for span in spans[call.id] or () if span.path == path])
    )
    changed = tuple(_file_changes(chosen.passes, path))
    if not (decisions or shown or changed):
        raise _unknown_path(chosen, path)
    return Why(
        path=path,
        written=None if line is None else _line_written(conn, trace, path, line),
        decisions=decisions,
        shown=shown,
        unknown=sum(spans[call.id] is None for entry in chosen.passes for call in entry.calls),
        changed=changed,
    )


def require_line(repo: Repository, trace: RunTrace, path: str, line: int) -> None:
    """Check that the file has so many lines in the result: after the run's last change, or else in its snapshot. What git no
    longer has, and a file that was deleted, is not checked.

    Raises:
        UsageError: it has fewer.
    """
    accepted = [attempt.commit_hash for _, attempt in trace.accepted()]
    of_run = () if trace.run is None else (trace.run.snapshot_commit, *accepted, trace.run.result_commit)
    known = [commit for commit in of_run if commit]
    try:
        content = read_blob(repo, known[-1], path) if known else None
    except GitError:
        return
    if content is None:
        return
    lines = content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
    if not 1 <= line <= lines:
        raise UsageError(
            f"{path} has {counted(lines, 'line')} in the result, and no line {line}",
            hint=f"`--why {path}` tells of the whole file",
        )


def render_why(found: Why, short: Callable[[str], str]) -> Group:
    """The answer for a person; `short` makes an address within the run into one to type."""
    lines: list[Text] = []
    if found.written is not None:
        lines += [*_written_lines(found.path, found.written, short), Text("")]
    lines.append(Text(f"decisions about {found.path}", style="bold"))
    for entry in found.decisions:
        lines += [Text(f"  {entry.place or 'the task'}", style="cyan"), *lines_of(entry.decisions, indent=4)]
    if not found.decisions:
        lines.append(Text("  none"))
    lines += [Text(""), Text("shown in", style="bold"), *_shown_lines(found)]
    lines += [Text(""), Text("changes to it", style="bold"), *_change_lines(found.changed)]
    return Group(*lines)


def _change_lines(changes: Sequence[FileChanged]) -> list[Text]:
    """Each change with what became of it; those that came to the same are one, with all their calls."""
    alike: dict[tuple[str, str, str], list[FileChanged]] = {}
    for change in changes:
        alike.setdefault((change.place, change.outcome, change.detail), []).append(change)
    lines = []
    for (place, outcome, detail), same in alike.items():
        good = outcome == "applied_and_passed" and not detail
        words = ": ".join(filter(None, (place, outcome.replace("_", " "), detail)))
        lines.append(Text(f"  {words}", style="green" if good else "yellow"))
        plain = [change.call_id for change in same if not (change.commit or change.edits)]
        lines += [Text(f"    {_call_numbers(plain)}")] if plain else []
        for change in same:
            parts = [f"commit {change.commit[:10]}"] if change.commit else []
            parts += map(_edit_words, change.edits)
            lines += [Text(f"    {_call_numbers([change.call_id])}, {'; '.join(parts)}")] if parts else []
    return lines or [Text("  no attempt")]


def _call_numbers(ids: Sequence[int | None]) -> str:
    return _format_ranges("call", [(number, number) for number in ids if number is not None])


def _shown_pieces(about: list[PromptSpan]) -> tuple[str, ...]:
    """How a prompt shows the file with these spans. Code that is to be written on stands in a prompt without a frame."""
    pieces: dict[str, list[tuple[int, int]]] = {}
    for span in framed(about) or [span for span in about if span.source is PromptSource.FILE]:
        if span.source in SHOWN:
            lines = pieces.setdefault(f"{span.source.value} {span.symbol}".rstrip(), [])
            if span.number is not None:
                lines.append((span.number, span.number + span.last - span.first))
    return tuple(
        ", ".join(filter(None, (piece, _format_ranges("line", lines)))) for piece, lines in pieces.items()
    )


def _format_ranges(noun: str, pairs: Sequence[tuple[int, int]]) -> str:
    """`lines 4-12, 20`: all numbers of the ranges; "" if there are none."""
    numbers = sorted({number for first, last in pairs for number in range(first, last + 1)})
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return f"{noun}{'s' if len(numbers) > 1 else ''} {words}" if words else ""


def _file_changes(passes: tuple[PassTrace, ...], path: str) -> Iterator[FileChanged]:
    for entry in passes:
        for attempt in entry.attempts:
            edits = tuple(report for report in attempt.edit_report if report.file_path == path)
            if edits or diff_of_file(attempt.diff, path):
                yield FileChanged(
                    place=entry.place,
                    attempt=attempt.attempt,
                    outcome=attempt.outcome.value,
                    detail=attempt.error or (f"not chosen: {entry.not_chosen}" if entry.not_chosen else ""),
                    commit=attempt.commit_hash,
                    call_id=attempt.call_id,
                    edits=edits,
                )


def _line_written(conn: Connection, trace: RunTrace, path: str, line: int) -> LineWritten:
    accepted = trace.accepted()
    origin = find_origin([attempt.diff for _, attempt in accepted], path, line)
    if origin.change is None:
        return LineWritten(line=line, text=origin.text, place="", line_then=origin.line)
    entry, attempt = accepted[origin.change]
    call = None if attempt.call_id is None else get_call(conn, attempt.call_id)
    edit = None if call is None else edit_that_wrote(call.answer.response, path, origin.text or "")
    tiers = {report.index: report.tier for report in attempt.edit_report}
    tests = [row for row in entry.tests if row.attempt_id == attempt.id]
    return LineWritten(
        line=line,
        text=origin.text,
        place=entry.place,
        line_then=origin.line,
        call_id=attempt.call_id,
        edit=None if edit is None else edit + 1,
        tier=0 if edit is None else tiers.get(edit, 0),
        tests=f"its tests: {counts(tests[-1])}" if tests else "",
        context=verdicts_about(context_passes(trace, entry), path),
    )


def edit_that_wrote(answer: str, path: str, text: str) -> int | None:
    """The 0-based position of the answer's edit of `path` whose new text contains the line, apart from indentation."""
    edits = parse_edits(answer)
    if not isinstance(edits, tuple):
        return None
    for index, edit in enumerate(edits):
        written = (line.strip() for line in edit.replacement.split("\n"))
        if edit.file_path == path and text.strip() in written:
            return index
    return None


def _unknown_path(chosen: RunTrace, path: str) -> UsageError:
    known = sorted({row.subject.path for entry in chosen.passes for row in entry.decisions} - {""})
    near = difflib.get_close_matches(path, known, n=NEAREST, cutoff=0.5)
    near += [name for name in known if name.endswith(f"/{path}") and name not in near]
    return UsageError(
        f"nothing was decided about {path!r}, and no prompt contains it",
        hint=f"near it: {', '.join(near)}" if near else "`cra show RUN --decisions` lists every decision",
    )


def _written_lines(path: str, line: LineWritten, short: Callable[[str], str]) -> list[Text]:
    shown = "" if line.text is None else f": {line.text.strip()}"
    head = Text(f"{path}:{line.line}{shown}", style="bold")
    if not line.place:
        moved = "" if line.line_then == line.line else f", as line {line.line_then}"
        return [head, Text(f"  was there before the run{moved}: no accepted attempt wrote it")]
    edit = "" if line.edit is None else f", edit {line.edit}"
    edit += f" (placed by tier {line.tier})" if line.tier else ""
    lines = [
        head,
        Text(f"  written by {line.place}, call {line.call_id}{edit}; {line.tests or 'no test run recorded'}"),
        Text("  the file was in that context because of:"),
        *(text for entry in line.context for text in lines_of(entry.decisions, indent=4)),
    ]
    if not line.context:
        lines.append(Text("    no decision: the step itself made the file"))
    if line.call_id is not None:
        lines.append(Text(f"  its prompt: {short(call_place(line.call_id))} --prompt", style="dim"))
    return lines


def _shown_lines(found: Why) -> list[Text]:
    named = [entry.call_id for entry in found.shown if not entry.pieces]
    alike: dict[tuple[str, str], list[FileShown]] = {}
    for entry in found.shown:
        if entry.pieces:
            alike.setdefault((entry.place, entry.call_type), []).append(entry)
    lines = []
    for (place, call_type), same in alike.items():
        others = ", or other parts of it" if len({entry.pieces for entry in same}) > 1 else ""
        calls = _call_numbers([entry.call_id for entry in same])
        lines.append(Text(f"  {calls}  {place} {call_type}: {'; '.join(same[0].pieces)}{others}"))
    if named:
        lines.append(Text(f"  only named in {_call_numbers(named)}"))
    if found.unknown:
        unknown = counted(found.unknown, "call")
        lines.append(Text(f"  what {unknown} showed is not known: they were {BEFORE_SPANS}"))
    return lines or [Text("  no prompt")]


def _edit_words(report: EditReport) -> str:
    kind = "" if report.kind == "edit" else f" ({report.kind})"
    tier = f" by tier {report.tier}" if report.tier else ""
    return f"edit {report.index + 1}{kind} {report.code.value}{tier}"


class LineOrigin(Struct, frozen=True, kw_only=True):
    """Where a line comes from. Lines are 1-based."""

    change: int | None
    """Position of the diff that wrote it; None if it was there before the first."""
    line: int
    """Its number in the file as that diff left it, or as it was before the first."""
    text: str | None
    """None if no diff shows it."""


def find_origin(diffs: Sequence[str], path: str, line: int) -> LineOrigin:
    """The change among `diffs` (each against the state before it, oldest first) that wrote line `line` of the last state."""
    text: str | None = None
    for number in range(len(diffs) - 1, -1, -1):
        added, line, seen = _step_back(diffs[number], path, line)
        text = seen if text is None else text
        if added:
            return LineOrigin(change=number, line=line, text=text)
    return LineOrigin(change=None, line=line, text=text)


def _step_back(diff: str, path: str, line: int) -> tuple[bool, int, str | None]:
    """Whether `diff` added the line, its number (after the diff if it did, before it otherwise), its text if shown."""
    changed = diff_of_file(diff, path)
    shift = 0
    for entry in () if changed is None else changed.lines:
        if entry.kind == "hunk":
            # Of a hunk that only deletes, git gives the line after which it stands.
            if entry.new is not None and line < entry.new:
                break
        elif entry.new == line:
            return entry.kind == "added", line if entry.old is None else entry.old, entry.text
        elif entry.new is None or entry.new < line:
            shift += (entry.kind == "added") - (entry.kind == "deleted")
    return False, line - shift, None
