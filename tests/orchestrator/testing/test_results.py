import pytest

from clean_room_agent.artifacts.evidence import FailingTest, StackFrame
from clean_room_agent.orchestrator.testing.failure_reports import MAX_LINES, error_lines, frames_of
from clean_room_agent.orchestrator.testing.results import (
    MAX_FRAMES,
    MAX_MESSAGES,
    MAX_TESTS,
    CommandEnd,
    TestRun,
    evidence_of,
    missed_threshold,
)

CHAINED = """Traceback (most recent call last):
  File "src/a.py", line 3, in outer
    inner()
  File "/usr/lib/x.py", line 9, in lib
    pass
  File "src/b.py", line 7, in inner
    raise ValueError(1)
ValueError: 1
more words
"""
SHORT_STYLE = """tests/t.py:4: in test_a
    f()
src/a.py:2: in f
    g()
../elsewhere.py:1: in g
    ???
E   ValueError: deep"""
SCRIPT = """
    Error: bad
    and more
      at Object.run (src/a.js:3:9)
      at async go (node_modules/x/i.js:1:1)
      at src/b.js:10:2
"""


def test_frames_of_each_style_are_innermost_first_and_of_the_tree_only() -> None:
    known = {"src/a.py", "src/b.py", "tests/t.py", "src/a.js", "src/b.js"}.__contains__
    a = StackFrame(path="src/a.py", line=3, function="outer")
    assert frames_of(CHAINED, known) == (StackFrame(path="src/b.py", line=7, function="inner"), a)
    short = (
        StackFrame(path="src/a.py", line=2, function="f"),
        StackFrame(path="tests/t.py", line=4, function="test_a"),
    )
    assert frames_of(SHORT_STYLE, known) == short
    script = (
        StackFrame(path="src/a.js", line=3, function="Object.run"),
        StackFrame(path="src/b.js", line=10),
    )
    assert frames_of(SCRIPT, known) == script


def test_error_lines_are_what_the_runner_points_at() -> None:
    assert error_lines(SHORT_STYLE, "m") == ("ValueError: deep",)
    assert error_lines(CHAINED, "") == ("ValueError: 1", "more words")
    assert error_lines(SCRIPT, "") == ("Error: bad", "and more")
    assert error_lines("no error lines", "from the report") == ("from the report",)
    long = error_lines("\n".join(f"E   {number}" for number in range(MAX_LINES + 3)), "")
    assert long[-2:] == (str(MAX_LINES - 1), "[3 more lines]")


def test_evidence_is_bounded_in_a_stated_order() -> None:
    failing = tuple(FailingTest(name=f"t::{n:03}", message=f"m{n}") for n in range(200))
    frames = tuple(StackFrame(path="a.py", line=n) for n in range(200))
    found = evidence_of(TestRun(command="x", end=CommandEnd(returncode=1), failing=failing, frames=frames))
    assert (len(found.failing_tests), len(found.messages), len(found.frames)) == (
        MAX_TESTS,
        MAX_MESSAGES,
        MAX_FRAMES,
    )
    assert (found.failing_tests[0], found.messages[0], found.frames[0].line) == ("t::000", "m0", 0)


def test_an_unread_runner_gives_the_lines_that_speak_of_errors() -> None:
    run = TestRun(
        command="x", end=CommandEnd(returncode=1, excerpt="building\nmain.c:3: error: no `;`\n\nleaving")
    )
    assert evidence_of(run).messages == ("main.c:3: error: no `;`",)
    assert evidence_of(TestRun(command="x", end=CommandEnd(returncode=0, excerpt="0 errors"))).messages == ()
    assert evidence_of(TestRun(command="x", end=CommandEnd(returncode=1, excerpt="one\ntwo"))).messages == (
        "one",
        "two",
    )


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: Coverage failure: total of 43 is less than fail-under=95",
        "FAIL Required test coverage of 95% not reached. Total coverage: 42.86%",
        'Jest: "global" coverage threshold for lines (95%) not met: 50%',
        "ERROR: Coverage for lines (50%) does not meet global threshold (95%)",
        "Error: 57.14% line coverage does not meet threshold of 95%.",
    ],
)
def test_a_coverage_that_is_too_low_is_known_by_its_line(line: str) -> None:
    def ended(code: int) -> TestRun:
        return TestRun(command="t", end=CommandEnd(returncode=code, excerpt=f"1 passed\n  {line}\nbye"))

    assert missed_threshold(ended(1)) == line
    assert not missed_threshold(ended(0))
