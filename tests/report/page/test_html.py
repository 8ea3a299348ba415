"""Pictures and pages as markup."""

from pathlib import Path
from xml.etree import ElementTree as ET

from msgspec.structs import replace
from tests.report.conftest import LargeRun, large_run, sources_of
from tests.report.page.read_page import read_page

from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.db.raw.calls import list_calls
from clean_room_agent.db.raw.runs import TimeSpanRow
from clean_room_agent.report.page.html import lanes_svg, run_html
from clean_room_agent.report.page.run_page import RunSources, run_page
from clean_room_agent.report.time_lanes import NOT_RECORDED, time_lanes
from clean_room_agent.report.trace import RunTrace

SVG = "{http://www.w3.org/2000/svg}"


def timed(large: LargeRun) -> RunTrace:
    row = TimeSpanRow(
        task_id=large.trace.task_id,
        kind=TimeKind.GIT,
        detail="snapshot <of> it",
        began_at="2026-03-04T05:00:00Z",
        ended_at="2026-03-04T05:00:02Z",
    )
    return replace(large.trace, times=(row,))


def test_a_picture_of_the_lanes_stands_alone_and_says_in_words_what_it_shows(large: LargeRun) -> None:
    lanes = time_lanes(timed(large))
    assert lanes is not None
    root = ET.fromstring(lanes_svg(lanes, "One & all"))
    assert root.findtext(f"{SVG}title") == "One & all"
    described = root.findtext(f"{SVG}desc") or ""
    assert "git 2.0 (2.0 alone)" in described
    assert {rect.get("class") for rect in root.iter(f"{SVG}rect")} >= {"own", "tests", "model"}
    names = [text.text for text in root.iter(f"{SVG}text")]
    assert [one.name for one in lanes.lanes if one.name not in names] == []
    assert "http" not in lanes_svg(lanes, "x").replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_the_page_has_a_lane_for_each_kind_with_its_seconds(large: LargeRun, sources: RunSources) -> None:
    text = run_html(run_page(replace(sources, trace=timed(large)), str))
    assert read_page(text).unclosed == []
    assert '<th scope="row" class="name">git</th>' in text
    assert "<title>snapshot &lt;of&gt; it</title>" in text
    assert NOT_RECORDED not in text


def test_the_page_of_an_older_record_says_what_it_cannot_know(sources: RunSources) -> None:
    assert NOT_RECORDED in run_html(run_page(sources, str))


def test_five_hundred_calls_fit_into_five_megabytes(tmp_path: Path) -> None:
    with large_run(tmp_path, 500) as run:
        text = run_html(run_page(sources_of(run), str))
        calls = list_calls(run.conn, run.trace.task_id)
    assert len(text.encode()) <= 5_000_000
    page = read_page(text)
    assert len(page.calls) == 500
    assert all(page.prompt(call.id) == call.request.prompt for call in calls)
