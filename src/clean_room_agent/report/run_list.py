"""The runs of a repository, newest first."""

import re
from collections.abc import Collection, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from clean_room_agent.artifacts.names import first_line, short_id
from clean_room_agent.db.raw.runs import RunOverview
from clean_room_agent.db.rows import moment
from clean_room_agent.report.trace import lone_command

COLOURS = {
    "complete": "green",
    "unproven": "yellow",
    "partial": "yellow",
    "needs_human": "yellow",
    "failed": "red",
}
"""Of a status; others are in progress, or were stopped."""
CONTEXT_PACKAGE = "(a context package)"
LONE_RESULT = {"train_plan": "(a training plan)", "curate_data": "(a dataset)"}
"""The purpose of a single pass without a run, by its mode."""
TEST_FILE = re.compile(r"(?<![^\s(])[\w./@+-]+\.\w+::(?:\w+::)*")
"""What precedes the name of a test: its file, and its classes."""
MORE = re.compile(r" and (\d+) more\Z")
MAX_NAMES = 3
UNITS = (("s", 60), ("min", 60), ("h", 24), ("d", 365))


def plain_table(*columns: str, right: Collection[str] = (), folded: Collection[str] = ()) -> Table:
    """An empty table without lines; columns are aligned to the left, and not wrapped, unless they are named."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in columns:
        table.add_column(
            name,
            justify="right" if name in right else "left",
            no_wrap=name not in folded,
            overflow="fold" if name in folded else "ellipsis",
        )
    return table


def render_runs(overviews: Sequence[RunOverview], now: str) -> Group:
    """Two lines per run: its outcome, then its task; `now` is a timestamp in the record's format."""
    last = "task, branch, result"
    table = plain_table("run", "age", "what", "status", "size", last, right=("age", "size"), folded=(last,))
    for entry in overviews:
        status = entry.status.value.replace("_", " ")
        told = Text(first_line(entry.task_description) or LONE_RESULT.get(entry.command, CONTEXT_PACKAGE))
        for line in result_lines(entry):
            told.append(f"\n{line}", style="dim")
        table.add_row(
            Text(short_id(entry.task_id), style="bold"),
            age(entry.timestamp, now),
            Text(entry.command if entry.is_run else lone_command(entry.command)),
            Text(status, style=COLOURS.get(entry.status.value, "cyan")),
            size_text(entry.size),
            told,
        )
    return Group(table)


def result_lines(entry: RunOverview) -> list[str]:
    """Branch and tests, then the reason; empty if there is nothing to say."""
    facts = []
    if entry.branch:
        facts.append("branch deleted" if entry.discarded else entry.branch)
    if entry.tests is not None:
        known = f"{entry.tests.tests_passed} passed, {entry.tests.tests_failed} failed"
        facts.append(f"tests exit {entry.tests.exit_code}" if entry.tests.tests_passed is None else known)
    lines = [", ".join(facts)] if facts else []
    if entry.reason not in {"", entry.status}:
        lines.append(short_names(first_line(entry.reason)))
    return lines


def short_names(text: str) -> str:
    """The text with only the first tests that it lists, without their files; `cra show --tests` shows them in full."""
    shown = TEST_FILE.sub("", text)
    head, colon, names = shown.partition(": ")
    listed = names.split(", ")
    if not colon or shown == text or len(listed) <= MAX_NAMES:
        return shown
    more = MORE.search(names)
    count = len(listed) - MAX_NAMES + (int(more[1]) if more else 0)
    return f"{head}: {', '.join(listed[:MAX_NAMES])} and {count} more"


def age(timestamp: str, now: str) -> str:
    """How long before `now`, in its largest whole unit: `3 min`."""
    left = max(int((moment(now) - moment(timestamp)).total_seconds()), 0)
    for unit, size in UNITS:
        if left < size:
            return f"{left} {unit}"
        left //= size
    return f"{left} y"


def size_text(size: int) -> str:
    """`size` bytes in the largest unit of which there is one: `0 B`, `1.2 MB`."""
    value, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if round(value, 1) < 1000:
            break
        value, unit = value / 1000, larger
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
