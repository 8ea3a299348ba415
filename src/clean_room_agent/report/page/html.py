"""Pages as HTML: one file each, including style and script, which loads nothing else and makes no requests."""

import base64
import functools
import hashlib
from pathlib import Path

import jinja2
from markupsafe import Markup

from clean_room_agent.report.page.highlighting import coloured_lines
from clean_room_agent.report.page.plan_graph import STATES
from clean_room_agent.report.page.plan_layout import plan_picture
from clean_room_agent.report.page.run_page import RunPage
from clean_room_agent.report.page.runs_page import SAID, RunsPage
from clean_room_agent.report.render_run import duration
from clean_room_agent.report.time_lanes import TimeLanes

TEMPLATES = Path(__file__).with_name("templates")
MARK = '<meta name="generator" content="cra report">'
"""Marks every page near its beginning: a file that has it may be overwritten."""
HEAD_BYTES = 1_000
"""The mark is within so many bytes."""


def run_html(page: RunPage) -> str:
    """The page of a run. All text is escaped here; invisible characters must have been replaced before."""
    places = {entry.line.place: f"pass-{number}" for number, entry in enumerate(page.passes, 1)}
    picture = None if page.plan is None else plan_picture(page.plan)
    return _rendered("run.html.j2", page=page, places=places, picture=picture, states=STATES)


def runs_html(page: RunsPage) -> str:
    """The page of all runs, likewise."""
    return _rendered("runs.html.j2", page=page, legend=tuple(SAID.items()))


def lanes_svg(lanes: TimeLanes, title: str) -> str:
    """The time lanes of a run as a self-contained picture, for light and dark pages."""
    return _environment().get_template("time_lanes.svg.j2").render(lanes=lanes, title=title)


def is_report(path: Path) -> bool:
    """Whether the file is a page of ours.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return MARK.encode() in file.read(HEAD_BYTES)


def _rendered(name: str, **values: object) -> str:
    style, script = _read("page.css"), _read("page.js")
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    own = {"style": Markup(style), "script": Markup(script), "mark": Markup(MARK)}  # noqa: S704 - our own files
    return _environment().get_template(name).render(values, policy=policy, **own)


def _read(name: str) -> str:
    return TEMPLATES.joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """The text as a source of a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


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
    environment.filters["seconds"] = lambda value: f"{value:.1f}"
    environment.filters["tick"] = lambda value: f"{value:g} s" if value < 120 else f"{value / 60:.3g} min"
    environment.filters["share"] = lambda part, whole: round(1000 * part / whole, 2) if whole else 0
    environment.filters["coloured"] = coloured_lines
    environment.filters["words"] = lambda value: str(value).replace("_", " ")
    return environment
