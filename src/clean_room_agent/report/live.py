"""A run as a person watches it: one line per pass that stays, and one line that moves while something is done."""

import dataclasses
import json
import threading
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.status import Status
from rich.text import Text

from clean_room_agent.git.generated import generated_words
from clean_room_agent.llm.call_events import CallProgress
from clean_room_agent.orchestrator import events
from clean_room_agent.report.live_line import LiveLine

INDENT = "  "
SHOWN_PATHS = 5
MOVING = (CallProgress, events.TestsProgress, events.IndexProgress)


class TerminalView:
    """An `Observer` for a person: with a moving line on a terminal, plain lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._line = LiveLine()

    def notice(self, event: events.Event) -> None:
        """Print or update what `event` changes on the screen."""
        self._line.notice(event)
        match event:
            case events.RunStarted():
                for line in start_lines(event):
                    self._print(line)
            case events.Note():
                self._print(Text(f"note: {event.text}", style="yellow"))
            case events.TestsFinished() if event.what:
                self._print(tests_line(event))
            case events.PassFinished():
                self._print(pass_line(event))
            case events.RunFinished():
                self.close()
            case _:
                self._move()

    def close(self) -> None:
        """Take the moving line away."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _print(self, line: Text) -> None:
        self._console.print(line, highlight=False, soft_wrap=True)

    def _move(self) -> None:
        if self._status is None and self._console.is_terminal:
            self._status = self._console.status(self._line, spinner="dots", refresh_per_second=4)
            self._status.start()


class EventStream:
    """An `Observer` for programs: a line of JSON per event, but for those that only move a line."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def notice(self, event: events.Event) -> None:
        """Write `event` as one line: its class under `event`, then its fields."""
        if isinstance(event, MOVING):
            return
        fields: dict[str, Any] = dataclasses.asdict(event)
        self._write(json.dumps({"event": type(event).__name__, **fields}, sort_keys=False) + "\n")


class Broadcast:
    """An `Observer` that hands every event on to several, one event at a time."""

    def __init__(self, observers: tuple[events.Observer, ...]) -> None:
        self._observers = observers
        self._lock = threading.Lock()

    def notice(self, event: events.Event) -> None:
        """Hand `event` to each, in order."""
        with self._lock:
            for observer in self._observers:
                observer.notice(event)


def start_lines(event: events.RunStarted) -> list[Text]:
    """What was started: task, models with their windows, what the snapshot holds."""
    first_line = event.task.strip().splitlines()[0] if event.task.strip() else ""
    models = ", ".join(f"{role} {tag} ({window:,} tokens)" for role, tag, window in event.models)
    where = f"prompts go to {event.remote} (allow_remote)" if event.remote else "local only"
    lines = [
        Text.assemble(("task ", "bold"), event.task_id[:8], "  ", first_line),
        Text(f"{INDENT}{where}; models: {models}"),
    ]
    if event.uncommitted:
        shown = ", ".join(event.uncommitted[:SHOWN_PATHS])
        more = len(event.uncommitted) - SHOWN_PATHS
        lines.append(
            Text(
                f"{INDENT}snapshot: {event.base_commit[:10]}, with {len(event.uncommitted)} uncommitted "
                f"file{'s' if len(event.uncommitted) != 1 else ''} ({shown}{f' and {more} more' if more > 0 else ''})"
            )
        )
    else:
        lines.append(Text(f"{INDENT}snapshot: {event.base_commit[:10]}, nothing uncommitted"))
    lines.extend(Text(f"{INDENT}left out: {path} ({why})", style="yellow") for path, why in event.excluded)
    if event.generated:
        lines.append(Text(f"{INDENT}{generated_words(event.generated)}", style="yellow"))
    return lines


def tests_line(event: events.TestsFinished) -> Text:
    """One line on a test run."""
    counts = f"{event.passed} passed, {event.failed} failed" if event.known else event.detail
    what = f"{event.what} tests" if event.what else "tests"
    mark = ("✓ ", "green") if event.success else ("· ", "yellow")
    tail = f" ({event.detail})" if event.known and event.detail else ""
    took = f", {event.seconds:.1f} s" if event.seconds else ""
    return Text.assemble(INDENT, mark, f"{what}: {counts}{tail}{took}")


def pass_line(event: events.PassFinished) -> Text:
    """One line on a finished pass: what it was, what came out, and what it cost."""
    mark = ("✓ ", "green") if event.success else ("✗ ", "red")
    fill = f"{event.prompt_tokens:,}/{event.window:,} tokens" if event.window else ""
    calls = f"{event.calls} call{'s' if event.calls != 1 else ''}"
    cost = ", ".join(part for part in (calls, fill, f"{event.seconds:.1f} s") if part)
    detail = f": {event.detail}" if event.detail else ""
    return Text.assemble(INDENT, mark, event.title, detail, (f"  [{cost}]", "dim"))
