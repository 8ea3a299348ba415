"""The live view of a run: one permanent line per pass, and one updated line on what is being done: what, which call,
how fast, for how long, and how the tests stand.
"""

import threading
import time
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.status import Status
from rich.text import Text

from clean_room_agent.artifacts.model_calls import (
    CallFinished,
    CallProgress,
    CallStarted,
    ServerAwaited,
)
from clean_room_agent.artifacts.names import counted, first_line, listed, model_name
from clean_room_agent.git.generated import generated_words
from clean_room_agent.orchestrator import events

BETWEEN = " · "
SURE_AFTER = 2.0
"""Seconds of work before the remaining time, or the speed of an answer, is shown."""
LEAST_WORDS = 24
"""Columns that are reserved for what is being done, before figures."""
INDENT = "  "
SHOWN_PATHS = 5


class _Call(Struct, frozen=True, kw_only=True):
    """A request in progress."""

    about: str
    started: float
    first: float = 0.0
    """When the first piece arrived."""
    pieces: int = 0


class LiveLine:
    """What is in progress, as one line of any width; the time is updated whenever it is drawn.

    Events may come from any thread, and it may be drawn from another.
    """

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._lock = threading.Lock()
        self._began = timer()
        self._pass = ""
        self._doing = ""
        self._since = self._began
        self._expected = 0.0
        self._share = 0.0
        self._tests = ""
        self._calls: dict[int, _Call] = {}
        self._asked = 0

    def notice(self, event: events.Event) -> None:
        """Update the state by `event`."""
        with self._lock:
            self._handle_event(event)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The line, in at most the available width."""
        del console
        yield Text(self.text(options.max_width), no_wrap=True, overflow="ellipsis")

    def text(self, width: int) -> str:
        """The line in at most `width` columns: figures that do not fit are left out before words are truncated."""
        with self._lock:
            line, (lasts, *figures) = self._doing, self._status_figures()
        ending = BETWEEN + lasts
        if cell_len(line) + cell_len(ending) > width:
            line = _truncate_text(line, max(width - cell_len(ending), min(width, LEAST_WORDS)))
        for figure in (lasts, *figures):
            longer = BETWEEN.join(filter(None, (line, figure)))
            if figure and cell_len(longer) <= width:
                line = longer
        return line

    def _handle_event(self, event: events.Event) -> None:
        match event:
            case events.IndexProgress():
                self._show_index_progress(event)
            case events.TestsStarted():
                self._begin_activity(events.tests_in_words(event.what), expected=event.expected_seconds)
            case events.TestsFinished():
                self._tests = f"tests {event.passed} passed, {event.failed} failed" if event.known else ""
                self._begin_activity(self._pass)
            case events.PassStarted():
                self._pass = event.title
                self._begin_activity(event.title)
            case events.PassProgress():
                self._begin_activity(f"{self._pass}: {event.doing}" if self._pass else event.doing)
            case events.PassFinished():
                self._pass = ""
            case CallStarted():
                self._asked += 1
                about = f"{event.prompt} {event.item}".strip()
                self._calls[event.number] = _Call(about=about, started=self._timer())
            case CallProgress():
                self._count_piece(event.number)
            case CallFinished():
                self._calls.pop(event.number, None)

    def _begin_activity(self, what: str, *, expected: float = 0.0) -> None:
        self._doing, self._since, self._expected, self._share = what, self._timer(), expected, 0.0

    def _show_index_progress(self, event: events.IndexProgress) -> None:
        if not self._doing.startswith("indexing"):
            self._since = self._timer()
        self._doing = f"indexing {event.done:,} of {event.total:,} files"
        self._share = event.done / event.total if event.total else 0.0

    def _count_piece(self, number: int) -> None:
        call = self._calls.get(number)
        if call is not None:
            first = call.first or self._timer()
            self._calls[number] = replace(call, first=first, pieces=call.pieces + 1)

    def _status_figures(self) -> tuple[str, ...]:
        """How long it takes, then more, the most informative first; "" for what there is nothing to say about."""
        now = self._timer()
        calls = tuple(self._calls.values())
        since = min((call.started for call in calls), default=self._since)
        beside = f" and {len(calls) - 1} more" if len(calls) > 1 else ""
        return (
            f"{max(now - since, 0):.0f} s{self._time_left(now) if not calls else ''}",
            f"asking {calls[-1].about}{beside}" if calls else "",
            _token_speed(calls, now),
            self._tests,
            counted(self._asked, "call") if self._asked else "",
            f"run {clock(now - self._began)}" if since > self._began else "",
        )

    def _time_left(self, now: float) -> str:
        """The remaining time of work with a known amount; "" if it cannot be estimated."""
        spent = now - self._since
        if self._share and spent >= SURE_AFTER:
            return f", about {spent * (1 - self._share) / self._share:.0f} s left"
        return f" of about {self._expected:.0f} s" if self._expected >= SURE_AFTER else ""


def clock(seconds: float) -> str:
    """Minutes and seconds, as on a clock: 83.4 is `1:23`."""
    whole = int(max(seconds, 0))
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def _truncate_text(words: str, width: int) -> str:
    shown = Text(words)
    shown.truncate(max(width, 1), overflow="ellipsis")
    return shown.plain


def _token_speed(calls: tuple[_Call, ...], now: float) -> str:
    """How many tokens have arrived, and how many per second, over all requests in progress."""
    speaking = [call for call in calls if call.pieces]
    if not speaking:
        return ""
    tokens = sum(call.pieces for call in speaking)
    longest = max(now - call.first for call in speaking)
    rate = sum(call.pieces / max(now - call.first, 1e-9) for call in speaking)
    return counted(tokens, "token") + (f", {rate:.0f}/s" if longest >= SURE_AFTER else "")


class TerminalView:
    """An `Observer` for a person: with a moving line on a terminal, plain lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._line = LiveLine()

    def notice(self, event: events.Event) -> None:
        """Print or update what `event` changes on the screen."""
        self._line.notice(event)
        lines = permanent_lines(event)
        for line in lines:
            self._console.print(line, highlight=False, soft_wrap=True)
        if isinstance(event, events.RunFinished):
            self.close()
        elif not lines:
            self._start_status()

    def close(self) -> None:
        """Remove the moving line."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _start_status(self) -> None:
        if self._status is None and self._console.is_terminal:
            self._status = self._console.status(self._line, spinner="dots", refresh_per_second=4)
            self._status.start()


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


def permanent_lines(event: events.Event) -> list[Text]:
    """What stays on the screen of an event; most have nothing. Of runs of tests those of a kind: what others are for is over then."""
    match event:
        case events.RunStarted():
            return start_lines(event)
        case events.Note():
            return [Text(f"note: {event.text}", style="yellow")]
        case ServerAwaited():
            return [Text(f"note: {event.said}; waiting for it", style="yellow")]
        case events.TestsFinished() if event.what and " " not in event.what:
            return [tests_line(event)]
        case events.PassFinished():
            return [pass_line(event)]
        case _:
            return []


def start_lines(event: events.RunStarted) -> list[Text]:
    """What was started: task, models with their windows, contents of the snapshot."""
    models = ", ".join(
        f"{role} {model_name(tag)} ({counted(window, 'token')})" for role, tag, window in event.models
    )
    where = f"prompts go to {event.remote} (allow_remote)" if event.remote else "local only"
    lines = [
        Text.assemble(("task ", "bold"), event.task_id[:8], "  ", first_line(event.task)),
        Text(f"{INDENT}{where}; models: {models}"),
    ]
    if event.uncommitted:
        lines.append(
            Text(
                f"{INDENT}snapshot: {event.base_commit[:10]}, with {counted(len(event.uncommitted), 'uncommitted file')} "
                f"({listed(event.uncommitted, SHOWN_PATHS)})"
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
    what = events.tests_in_words(event.what)
    mark = ("✓ ", "green") if event.success else ("· ", "yellow")
    tail = f" ({event.detail})" if event.known and event.detail else ""
    took = f", {event.seconds:.1f} s" if event.seconds else ""
    return Text.assemble(INDENT, mark, f"{what}: {counts}{tail}{took}")


def pass_line(event: events.PassFinished) -> Text:
    """One line on a finished pass: what it was, its result, and its cost."""
    mark = ("✓ ", "green") if event.success else ("✗ ", "red")
    fill = f"{event.prompt_tokens:,}/{counted(event.window, 'token')}" if event.window else ""
    calls = counted(event.calls, "call")
    cost = ", ".join(part for part in (calls, fill, f"{event.seconds:.1f} s") if part)
    detail = f": {event.detail}" if event.detail else ""
    return Text.assemble(INDENT, mark, event.title, detail, (f"  [{cost}]", "dim"))
