"""The page of `cra report`: its content, a function of the record, and its HTML, one file including its style, which loads nothing
else and makes no requests.
"""

import base64
import functools
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from msgspec import Struct
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import DiffLexer

from clean_room_agent.artifacts.goals import GoalOutcome
from clean_room_agent.artifacts.names import counted, short_id
from clean_room_agent.db.raw.passes import ValidationRow
from clean_room_agent.db.raw.runs import recorded_evidence
from clean_room_agent.db.rows import Connection
from clean_room_agent.json_values import change_texts
from clean_room_agent.report.calls import CallTexts, WindowUse, call_texts, window_uses
from clean_room_agent.report.causes import ending_on_record
from clean_room_agent.report.decisions import weights
from clean_room_agent.report.page.plan_list import PlannedPart, planned_parts
from clean_room_agent.report.run_view import notes, run_object
from clean_room_agent.report.summary import Ending, TestsTouched, duration, touched_on_record
from clean_room_agent.report.time_lanes import TimeLanes, time_lanes
from clean_room_agent.report.trace import RunTrace, ended_words, tokens_of
from clean_room_agent.report.validation import counts, outputs

OF_RUN = {"baseline": "before", "final": "after", "restored": "after, with the tests restored"}
"""Kinds of test runs whose whole output is on the page; for an attempt, only the failures are."""


class RunPage(Struct, frozen=True, kw_only=True):
    """The page of one run."""

    trace: RunTrace
    view: dict[str, Any]
    """The run as `cra show --json` answers it."""
    ending: Ending
    evidence: tuple[GoalOutcome, ...]
    result: str
    """The whole run's change as a diff; "" if there is none."""
    plan: tuple[PlannedPart, ...]
    lanes: TimeLanes | None
    uses: tuple[WindowUse, ...]
    texts: dict[int, CallTexts]
    """By the id of the call."""
    systems: tuple[str, ...]
    """The system texts, each once."""
    tests: tuple[ValidationRow, ...]
    """Of the run itself: before, after, and with the tests restored."""
    touched: TestsTouched
    commands: tuple[tuple[str, str], ...]
    """(command, what it does) to look further."""


def run_page(conn: Connection, trace: RunTrace, result: str, safe: Callable[[str], str]) -> RunPage:
    """The page, in which every text went through `safe`; `result` is the change that the run made.

    Raises:
        RecordError: the record holds a value that this program never writes.
    """
    texts, ending = call_texts(conn, trace), ending_on_record(conn, trace)
    page = RunPage(
        trace=trace,
        view=run_object(trace, ending),
        ending=ending,
        evidence=recorded_evidence(trace.events) or (),
        result=result,
        plan=planned_parts(trace),
        lanes=time_lanes(trace),
        uses=window_uses(conn, trace),
        texts={text.head.id: text for text in texts},
        systems=tuple(dict.fromkeys(text.call.request.system_prompt for text in texts)),
        tests=tuple(row for row in trace.tests if row.task_id == trace.task_id and row.kind in OF_RUN),
        touched=touched_on_record(trace.events),
        commands=_next_commands(trace),
    )
    return change_texts(page, safe)  # type: ignore[no-any-return]


def _next_commands(trace: RunTrace) -> tuple[tuple[str, str], ...]:
    run, row = short_id(trace.task_id), trace.run
    rows = [(f"cra show {run}", "look into it in the terminal")]
    if row is None:
        return tuple(rows)
    if row.branch:
        rows += [
            (f"cra apply {run}", "bring it into your working tree"),
            (f"git diff {row.base_commit[:10]}..{row.branch}", "what it changes, as git says it"),
        ]
    if row.status.value in {"partial", "failed", "interrupted", "needs_human"}:
        rows.append((f"cra solve --resume {run}", "continue where it stopped"))
    return (*rows, (f"cra replay {run}", "the same run again, from its recorded answers"))


TEMPLATES = Path(__file__).with_name("templates")
MARK = '<meta name="generator" content="cra report">'
"""Marks every page near its beginning: a file that has it may be overwritten."""
HEAD_BYTES = 1_000
"""The mark is within so many bytes."""


def run_html(page: RunPage) -> str:
    """The page of a run. All text is escaped here; invisible characters must have been replaced before."""
    places = {entry.place: f"pass-{number}" for number, entry in enumerate(page.trace.passes, 1)}
    return rendered("run.html.j2", page=page, places=places, of_run=OF_RUN)


def is_report(path: Path) -> bool:
    """Whether the file is a page of ours.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return MARK.encode() in file.read(HEAD_BYTES)


def rendered(name: str, **values: object) -> str:
    """A page from this template."""
    style = TEMPLATES.joinpath("page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    own = {"style": Markup(style), "mark": Markup(MARK)}  # noqa: S704 - our own files
    return _environment().get_template(name).render(values, policy=policy, **own)


def diff_files(diff: str) -> list[tuple[str, Markup]]:
    """(path, lines as HTML with colours) of each file of a diff."""
    files = re.split(r"(?m)^(?=diff --git )", diff)
    return [
        (text.partition("\n")[0].rpartition(" b/")[2], _coloured_diff(text)) for text in files if text.strip()
    ]


def _coloured_diff(diff: str) -> Markup:
    coloured = highlight(diff, DiffLexer(stripnl=False), HtmlFormatter(nowrap=True))
    return Markup(coloured)  # noqa: S704 - Pygments escapes what it colours


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = lambda value: "" if value is None else f"{value:,}"
    environment.filters["duration"] = duration
    environment.filters["share"] = lambda part, whole: round(1000 * part / whole, 2) if whole else 0
    environment.filters["words"] = lambda value: str(value).replace("_", " ")
    environment.filters |= {"files": diff_files, "counts": counts, "outputs": outputs, "weights": weights}
    environment.filters["counted"] = counted
    environment.filters |= {"ended": ended_words, "notes": notes, "tokens": tokens_of}
    return environment
