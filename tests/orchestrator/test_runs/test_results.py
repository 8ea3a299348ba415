import pytest
from testing.runs.memory_run import pytest_run

from clean_room_agent.artifacts.evidence import FailingTest, StackFrame
from clean_room_agent.orchestrator.test_runs.gate import judge_step
from clean_room_agent.orchestrator.test_runs.output import MAX_LINES, error_lines, frames_of
from clean_room_agent.orchestrator.test_runs.results import (
    MAX_FRAMES,
    MAX_MESSAGES,
    MAX_TESTS,
    ChangingNames,
    CommandEnd,
    TestRun,
    evidence_of,
    function_of_numbered,
    has_replaced,
    missed_threshold,
    telling_lines,
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


def test_of_a_long_message_the_first_lines_are_shown() -> None:
    long = error_lines("\n".join(map(str, range(MAX_LINES + 3))))
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
    line = "Required test coverage of 95% reached. Total coverage: 97.00%"
    assert not missed_threshold(ended(1))


def test_what_npm_adds_to_an_error_tells_nothing() -> None:
    printed = """\
npm error code ENOENT
npm error enoent Could not read package.json
npm error enoent
npm error A complete log of this run can be found in: /root/.npm/_logs/a.log
"""
    assert telling_lines(printed)[-1] == "npm error enoent Could not read package.json"


def test_of_names_that_change_the_number_of_results_counts() -> None:
    names = ChangingNames()
    first = pytest_run({"t.py::f[a]": "passed", "t.py::f[17]": "failed", "t.py::f[23]": "passed"})
    again = pytest_run({"t.py::f[a]": "passed", "t.py::f[4]": "passed", "t.py::f[86]": "failed"})
    assert names.learn(first, again) == ("t.py::f",)
    numbered = {"t.py::f[a]": "passed", "t.py::f[~1]": "passed", "t.py::f[~2]": "failed"}
    for run in (first, again, names.of(first)):
        assert names.of(run).report.outcomes == numbered
    fixed = names.of(pytest_run({"t.py::f[a]": "passed", "t.py::f[5]": "passed", "t.py::f[6]": "passed"}))
    assert judge_step(names.of(first), fixed).passed
    fewer = names.of(pytest_run({"t.py::f[a]": "passed", "t.py::f[5]": "failed"}))
    assert judge_step(names.of(first), fewer).newly_failing == ("t.py::f[~1]",)


def test_a_number_of_results_that_changes_is_the_least() -> None:
    names = ChangingNames()
    first = pytest_run({f"t.py::f[{number}]": "passed" for number in (1, 2, 3)})
    assert names.learn(first, pytest_run({"t.py::f[4]": "passed"})) == ("t.py::f",)
    assert set(names.of(first).report.outcomes) == {"t.py::f[~1]"}
    assert judge_step(names.of(first), names.of(pytest_run({"t.py::f[9]": "passed"}))).passed


@pytest.mark.parametrize(
    ("one", "other", "group", "number"),
    [
        ("m.C.test_17", "m.C.test_4", "m.C", "m.C.~1"),
        ("a.test.js > on 17:00", "a.test.js > on 17:01", "a.test.js", "a.test.js > ~1"),
        ("a.test.js > of 0.17", "a.test.js > of 0.4", "a.test.js", "a.test.js > ~1"),
        ("t.py::C::test_x17", "t.py::C::test_x4", "t.py::C", "t.py::C::~1"),
    ],
)
def test_a_name_without_parameters_is_counted_in_its_class_or_suite(
    one: str, other: str, group: str, number: str
) -> None:
    names = ChangingNames()
    assert names.learn(pytest_run({one: "passed"}), pytest_run({other: "passed"})) == (group,)
    assert dict(names.of(pytest_run({one: "passed"})).report.outcomes) == {number: "passed"}
    assert function_of_numbered(number) == ""
    assert function_of_numbered("t.py::f[~1]") == "t.py::f"
    assert function_of_numbered(one) == one


def test_a_class_whose_name_changes_is_counted_in_what_holds_it() -> None:
    before = pytest_run({"t.py::C17::test_x": "passed", "t.py::D::test_y": "passed", "t.py::f": "passed"})
    after = pytest_run({"t.py::C4::test_x": "passed", "t.py::D::test_y": "passed", "t.py::f": "passed"})
    assert has_replaced(before, after)
    names = ChangingNames()
    assert names.learn(before, after) == ("t.py",)
    numbered = {"t.py::~1": "passed", "t.py::D::test_y": "passed", "t.py::f": "passed"}
    for run in (before, after, names.of(after)):
        assert names.of(run).report.outcomes == numbered
    lost = names.of(pytest_run({"t.py::D::test_y": "passed", "t.py::f": "passed"}))
    assert not judge_step(names.of(before), lost).passed
    assert not has_replaced(before, pytest_run({"t.py::D::test_y": "passed", "t.py::f": "passed"}))


def test_only_what_has_others_in_its_place_is_looked_at_again() -> None:
    before = pytest_run({"t.py::f[1]": "passed", "t.py::g": "passed"})
    assert has_replaced(before, pytest_run({"t.py::f[2]": "passed", "t.py::g": "passed"}))
    assert not has_replaced(before, pytest_run({"t.py::f[1]": "passed"}))
    several = pytest_run(
        {"t.py::f[1]": "passed", "t.py::f[2]": "passed", "t.py::C::a": "passed", "t.py::C::b": "passed"}
    )
    fewer = pytest_run({"t.py::f[1]": "passed", "t.py::C::a": "passed", "t.py::C::b": "passed"})
    assert has_replaced(several, fewer), "how many there are may change"
    assert not has_replaced(
        several, pytest_run({"t.py::f[1]": "passed", "t.py::f[2]": "passed", "t.py::C::a": "passed"})
    )
    assert not has_replaced(
        before, pytest_run({"t.py::f[1]": "passed", "t.py::g": "failed", "u.py::h": "passed"})
    )
