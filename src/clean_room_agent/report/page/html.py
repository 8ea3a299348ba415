"""Pages as HTML: one file each, including its style, which loads nothing else and makes no requests."""

import base64
import functools
import hashlib
import re
from pathlib import Path

import jinja2
from markupsafe import Markup

from clean_room_agent.report.decisions import weights
from clean_room_agent.report.page.run_page import OF_RUN, RunPage
from clean_room_agent.report.page.runs_page import RunsPage
from clean_room_agent.report.run_view import notes
from clean_room_agent.report.summary import duration
from clean_room_agent.report.trace import ended_words, tokens_of
from clean_room_agent.report.validation import counts, outputs

TEMPLATES = Path(__file__).with_name("templates")
MARK = '<meta name="generator" content="cra report">'
"""Marks every page near its beginning: a file that has it may be overwritten."""
HEAD_BYTES = 1_000
"""The mark is within so many bytes."""


def run_html(page: RunPage) -> str:
    """The page of a run. All text is escaped here; invisible characters must have been replaced before."""
    places = {entry.place: f"pass-{number}" for number, entry in enumerate(page.trace.passes, 1)}
    return _rendered("run.html.j2", page=page, places=places, of_run=OF_RUN)


def runs_html(page: RunsPage) -> str:
    """The page of all runs, likewise."""
    return _rendered("runs.html.j2", page=page)


def is_report(path: Path) -> bool:
    """Whether the file is a page of ours.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return MARK.encode() in file.read(HEAD_BYTES)


def _rendered(name: str, **values: object) -> str:
    style = TEMPLATES.joinpath("page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    own = {"style": Markup(style), "mark": Markup(MARK)}  # noqa: S704 - our own files
    return _environment().get_template(name).render(values, policy=policy, **own)


def diff_files(diff: str) -> list[tuple[str, Markup]]:
    """(path, lines as HTML with colours) of each file of a diff."""
    files = re.split(r"(?m)^(?=diff --git )", diff)
    return [(text.partition("\n")[0].rpartition(" b/")[2], _coloured(text)) for text in files if text.strip()]


def _coloured(diff: str) -> Markup:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import DiffLexer

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
    environment.filters |= {"ended": ended_words, "notes": notes, "tokens": tokens_of}
    return environment
