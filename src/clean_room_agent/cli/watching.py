"""Observers of a run: the terminal's live view, the lines of `-v`, and the file of `--events`."""

import contextlib
import errno
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.text import Text

from clean_room_agent.artifacts.model_calls import CallFinished, CallProgress, CallUnreadable
from clean_room_agent.artifacts.names import counted, item_name, model_name
from clean_room_agent.cli import output
from clean_room_agent.cli.output import current_display
from clean_room_agent.cli.safe_console import ChangedView, progress_console
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.passes import DecisionRow, list_decisions
from clean_room_agent.json_values import change_texts, to_plain
from clean_room_agent.llm.probes import PROBE_NAME
from clean_room_agent.orchestrator.events import CandidateDrawn, Event, IndexProgress, Observer, PassFinished
from clean_room_agent.report.live import Broadcast, TerminalView
from clean_room_agent.workspace import Workspace

INDENT = "      "
DIM = "dim"
DIFF_STYLES = {"+": "green", "-": "red"}
MAX_DIFF_LINES = 40


@contextlib.contextmanager
def watching(
    events: IO[str] | None, *, verbose: int = 0, workspace: Workspace | None = None
) -> Iterator[Observer]:
    """An observer of a run that updates the terminal, writes `events`, and with `verbose` prints calls."""
    console = progress_console()
    view = TerminalView(console)
    display = current_display()  # events come from other threads, which have no context of click
    observers: list[Observer] = [ChangedView(view, lambda event: change_texts(event, display.safe))]
    if verbose and workspace is not None:
        observers.append(VerboseView(workspace.raw, partial(_write_aside, console), level=verbose))
    if events is not None:
        observers.append(ChangedView(EventStream(events), display.redacted))
    try:
        yield Broadcast(tuple(observers))
    finally:
        view.close()


class VerboseView:
    """Prints what `-v` and `-vv` add: a line for each model call as it ends, the change that an answer makes, and from level 2
    on a line for each candidate that a pass included.

    Candidates that were left out are many; they are in the record, and `cra show` prints them.
    """

    def __init__(self, raw: Path, write: Callable[[str, str], None], *, level: int) -> None:
        """`write` gets each line and its style."""
        self._raw = raw
        self._write = write
        self._level = level
        self._last_decision = 0

    def notice(self, event: Event) -> None:
        """Print a line on `event`, if it has one."""
        match event:
            case CallFinished():
                self._write(INDENT + call_line(event), DIM)
            case CallUnreadable():
                first_line = event.fault.strip().partition("\n")[0]
                self._write(f"{INDENT}call {event.call_id} could not be read: {first_line}", DIM)
            case CandidateDrawn():
                self._write(f"{INDENT}candidate {event.number}:", DIM)
                for line, style in diff_lines(event.diff):
                    self._write(INDENT + line, style)
            case PassFinished() if self._level > 1:
                self._write_decisions(event.pass_id)

    def _write_decisions(self, pass_id: str) -> None:
        """Print what the pass included since the last time; the id of a retry begins with that of its pass."""
        with contextlib.closing(connect_file("raw", self._raw, read_only=True)) as conn:
            rows = [row for row in list_decisions(conn, pass_id) if row.id > self._last_decision]
        for row in rows:
            self._last_decision = row.id
            if row.included:
                self._write(INDENT + decision_line(row), DIM)


def diff_lines(diff: str) -> list[tuple[str, str]]:
    """The lines of a diff that say what changes, each with its style; of a long diff, the beginning."""
    lines = [line for line in diff.splitlines() if not line.startswith(("diff ", "index ", "--- "))]
    more = len(lines) - MAX_DIFF_LINES
    told = [(line, DIFF_STYLES.get(line[:1], DIM)) for line in lines[:MAX_DIFF_LINES]]
    return [*told, (f"… {more} more lines", DIM)] if more > 0 else told


def decision_line(row: DecisionRow) -> str:
    """A candidate that was included, and why."""
    what = item_name(row.subject.path, row.subject.symbol)
    return f"{row.stage} took {what + ': ' if what else ''}{row.reason}"


def call_line(call: CallFinished) -> str:
    """A model call in numbers, and how it ended if it did not stop by itself."""
    about = f"{call.prompt} {call.item}".strip()
    tokens = f"{call.prompt_tokens:,} + {counted(call.completion_tokens, 'token')}"
    if call.prompt == PROBE_NAME:
        return f"call {call.call_id} {about}: whether a prompt beyond its window is refused"
    if call.recalled:
        return f"call {call.call_id} {about}: {tokens}, from the record"
    ending = "" if call.ending == "stop" else f", {call.ending}"
    return f"call {call.call_id} {about}: {model_name(call.model)}, {tokens}, {call.seconds:.1f} s{ending}"


def _write_aside(console: Console, line: str, style: str) -> None:
    """Print the line above the moving line, which only its own console can do."""
    console.print(Text(output.safe(line), style=style), highlight=False, soft_wrap=True)


class EventStream:
    """An `Observer` for programs: a line of JSON per event, except for those that only update the moving line. If that fails, the
    run goes on without it: the record has everything.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file: IO[str] | None = file

    def notice(self, event: Event) -> None:
        """Write `event` as one line, at once: its class under `event`, then its fields."""
        if self._file is None or isinstance(event, CallProgress | IndexProgress):
            return
        fields: dict[str, Any] = to_plain(event)
        try:
            self._file.write(json.dumps({"event": type(event).__name__, **fields}) + "\n")
            self._file.flush()
        except OSError as exc:
            with contextlib.suppress(OSError):  # closing it later would try, and fail, to write the rest
                self._file.close()
            self._file = None
            if exc.errno != errno.EPIPE:
                output.aside(f"note: no more events are written: {exc.strerror}")
