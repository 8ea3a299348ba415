"""The line that moves, without a terminal."""

import pytest

from clean_room_agent.artifacts.model_calls import CallEvent, CallFinished, CallProgress, CallStarted
from clean_room_agent.orchestrator import events
from clean_room_agent.report.live import LiveLine, clock, permanent_lines

WIDE = 200


class Clock:
    """A timer that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def started(number: int, item: str = "app/money.py") -> CallStarted:
    return CallStarted(
        number=number,
        prompt="scope_judgment",
        item=item,
        model="coder:3b",
        estimated_tokens=900,
        max_tokens=40,
    )


def finished(number: int) -> CallFinished:
    return CallFinished(
        number=number,
        call_id=70 + number,
        prompt="scope_judgment",
        item="",
        model="coder:3b",
        prompt_tokens=900,
        completion_tokens=12,
        seconds=3.0,
        ending="stop",
        recalled=False,
    )


def line_after(*told: events.Event | CallEvent | float) -> LiveLine:
    """A number lets so many seconds go by."""
    timer = Clock()
    line = LiveLine(timer)
    for event in told:
        if isinstance(event, float):
            timer.now += event
        else:
            line.notice(event)
    return line


STEP = events.PassStarted(pass_type="step", pass_id="t.s1", title="step 1/2")  # type: ignore[arg-type]
EDITS = events.PassProgress(doing="writing the edits")


def test_a_pass_tells_what_is_done_and_for_how_long() -> None:
    assert line_after(STEP, 3.0, EDITS, 12.4).text(WIDE) == "step 1/2: writing the edits · 12 s · run 0:15"


def test_a_call_tells_what_it_is_about_and_how_fast_it_is_answered() -> None:
    line = line_after(STEP, 1.0, EDITS, started(1), 1.0, *[CallProgress(number=1)] * 20, 4.0)
    assert line.text(WIDE) == (
        "step 1/2: writing the edits · 5 s · asking scope_judgment app/money.py · 20 tokens, 5/s · 1 call · run 0:06"
    )


def test_calls_that_go_on_side_by_side_are_one_line() -> None:
    line = line_after(STEP, started(1, "a.py"), 2.0, started(2, "b.py"), started(3, "c.py"), finished(2), 1.0)
    assert line.text(WIDE) == "step 1/2 · 3 s · asking scope_judgment c.py and 1 more · 3 calls"


def test_tests_say_how_long_they_took_before() -> None:
    line = line_after(events.TestsStarted(what="final", expected_seconds=41.0), 12.0)
    assert line.text(WIDE) == "final tests · 12 s of about 41 s · run 0:12"[: -len(" · run 0:12")]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("final", ["  ✓ final tests: 1 passed, 0 failed, 2.0 s"]),
        ("1 newly failing test again", []),
        (events.LOOKING, []),
        ("", []),
    ],
)
def test_a_run_of_tests_stays_on_the_screen_if_it_is_of_a_kind(what: str, said: list[str]) -> None:
    ended = events.TestsFinished(what=what, passed=1, failed=0, known=True, success=True, seconds=2.0)
    assert [line.plain for line in permanent_lines(ended)] == said


def test_indexing_says_how_many_files_and_how_long_yet() -> None:
    line = line_after(
        events.IndexProgress(done=0, total=4000), 4.0, events.IndexProgress(done=1000, total=4000)
    )
    assert line.text(WIDE) == "indexing 1,000 of 4,000 files · 4 s, about 12 s left"


def test_a_narrow_terminal_loses_figures_before_words_and_never_wraps() -> None:
    line = line_after(STEP, 1.0, EDITS, started(1), 1.0, *[CallProgress(number=1)] * 20, 4.0)
    assert line.text(20) == "step 1/2: writing t…"
    assert line.text(60) == "step 1/2: writing the edits · 5 s · 20 tokens, 5/s · 1 call"
    assert line.text(80) == "step 1/2: writing the edits · 5 s · asking scope_judgment app/money.py · 1 call"
    for width in range(1, 121):
        assert len(line.text(width)) <= width


def test_a_clock_has_hours_where_there_are_any() -> None:
    assert [clock(seconds) for seconds in (0.9, 83.4, 3_725.0)] == ["0:00", "1:23", "1:02:05"]
