"""The summary of `cra enrich`, printed."""

import json

import pytest

from clean_room_agent.app.enrichment import Cost, Failures, FileCounts, Promoted, Skipped, Summary
from clean_room_agent.cli import output
from clean_room_agent.cli.views.enrich import EnrichmentView, as_object, show
from clean_room_agent.enrichment.describe import Described
from clean_room_agent.report.summary import Ending


def summary(*, skipped: tuple[Skipped, ...] = (), promotion: Promoted | None = None) -> Summary:
    return Summary(
        task_id="t",
        model="m",
        counts=FileCounts(files=4, already_described=1, described=2, left=1),
        failures=Failures(skipped=skipped, gave_up=False, ending=Ending()),
        promotion=promotion,
        cost=Cost(calls=3, tokens=1234, duration_ms=2500),
    )


def test_the_object_is_flat(capsys: pytest.CaptureFixture[str]) -> None:
    output.answer_json(as_object(summary(skipped=(Skipped(path="a.py", reason="cut off"),))))
    told = json.loads(capsys.readouterr().out)
    assert list(told)[:6] == ["task_id", "model", "files", "already_described", "described", "left"]
    assert told["skipped"] == [{"path": "a.py", "reason": "cut off"}]
    assert (told["calls"], told["promotion"]) == (3, None)


def test_what_was_done_and_what_is_next_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    show(summary(skipped=(Skipped(path="a.py", reason="cut off"),)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 files described by m; 3 calls, 1,234 tokens, 2 s"
    assert "1 file left for another time" in lines
    assert "  a.py: cut off" in lines
    assert lines[-1].startswith("`cra enrich --promote`")
    show(summary(promotion=Promoted(promoted=2, unchanged=1, outdated=("b.py",))))
    assert "2 promoted, 1 were in the index already" in capsys.readouterr().out


def test_a_file_without_a_description_is_named_as_it_comes(capsys: pytest.CaptureFixture[str]) -> None:
    view = EnrichmentView(total=2, model="m", verbose=False)
    view.answered(Described(path="a.py", purpose="adds", fault=""))
    view.answered(Described(path="b.py", purpose="", fault="cut off"))
    assert view.described == 1
    assert capsys.readouterr().err == "b.py: cut off\n"
