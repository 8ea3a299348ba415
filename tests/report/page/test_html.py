"""Pictures and pages as markup."""

from xml.etree import ElementTree as ET

from msgspec.structs import replace
from tests.report.conftest import LargeRun
from tests.report.page.read_page import read_page
from tests.report.page.test_run_page import sources_of

from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.db.raw.runs import TimeSpanRow
from clean_room_agent.report.page.html import lanes_svg, run_html
from clean_room_agent.report.page.run_page import run_page
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


def test_the_page_has_a_lane_for_each_kind_with_its_seconds(large: LargeRun) -> None:
    sources = replace(sources_of(large), trace=timed(large))
    text = run_html(run_page(sources, str))
    assert read_page(text).unclosed == []
    assert '<th scope="row" class="name">git</th>' in text
    assert "<title>snapshot &lt;of&gt; it</title>" in text
    assert NOT_RECORDED not in text


def test_the_page_of_an_older_record_says_what_it_cannot_know(large: LargeRun) -> None:
    assert NOT_RECORDED in run_html(run_page(sources_of(large), str))
