from collections.abc import Mapping

import pytest
from msgspec.structs import replace
from testing.runs.memory_run import pytest_run

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.goals import GoalOutcome, Goals, GoalSource, GoalTest, Trust
from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.artifacts.test_results import Outcome, TestReport
from clean_room_agent.orchestrator.goal_verdict import (
    MAX_RED,
    NOTHING_SHOWS,
    NOTHING_WILL,
    ONLY_CHANGED,
    CommandRun,
    changed_goals,
    goal_outcomes,
    has_open_goal,
    related_doubt,
    repository_goals,
    told_at_first,
    verdict_of,
)
from clean_room_agent.orchestrator.test_runs.gate import judge_final
from clean_room_agent.orchestrator.test_runs.results import CommandEnd, TestRun

A, B = "t.py::a", "t.py::b"


def ran(outcomes: Mapping[str, Outcome], *failing: FailingTest) -> TestRun:
    return replace(pytest_run(outcomes), failing=failing)


def outcome(source: GoalSource, *, green: bool, trust: Trust = "proof", after: str = "") -> GoalOutcome:
    return GoalOutcome(name=A, source=source, trust=trust, after=after, green=green)


def test_the_red_tests_of_the_base_are_goals() -> None:
    failure = FailingTest(
        name=A, message="AssertionError", expected="[9, 0, 0]", actual="[9, 0]", path="t.py"
    )
    (goal,) = repository_goals(ran({A: "failed", B: "passed"}, failure)).tests
    assert (goal.name, goal.path, goal.got, goal.wanted) == (A, "t.py", "[9, 0]", "[9, 0, 0]")
    (seen,) = goal_outcomes(Goals(tests=(goal,)), ran({A: "failed"}), ran({A: "passed"}))
    assert seen.words == f"{A}: [9, 0] before, [9, 0, 0] now"


def test_what_was_compared_otherwise_is_not_said_to_be_given_now() -> None:
    failure = FailingTest(name=A, expected="to contain 'default'", actual="'Usage'")
    (goal,) = repository_goals(ran({A: "failed"}, failure)).tests
    (seen,) = goal_outcomes(Goals(tests=(goal,)), ran({A: "failed"}), ran({A: "passed"}))
    assert seen.words == f"{A}: 'Usage', wanted to contain 'default' before, passes now"


def test_without_values_a_goal_says_how_it_failed() -> None:
    failure = FailingTest(name=A, message="ValueError: no\nat x")
    (goal,) = repository_goals(ran({A: "error"}, failure)).tests
    (seen,) = goal_outcomes(Goals(tests=(goal,)), ran({A: "error"}), ran({A: "passed"}))
    assert seen.words == f"{A}: ValueError: no before, passes now"


def test_where_a_command_fails_without_a_red_test_it_is_the_goal_itself() -> None:
    base = TestRun(command="make test", end=CommandEnd(returncode=2))
    goals = repository_goals(base)
    done = TestRun(command="make test", end=CommandEnd(returncode=0))
    assert [one.name for one in goals.tests] == ["sh: make test"]
    assert goal_outcomes(goals, base, done)[0].words == "sh: make test: exit 2 before, exit 0 now"
    assert not goal_outcomes(goals, base, base)[0].green
    assert not goal_outcomes(goals, base, done, (base,))[0].green
    assert repository_goals(done) == Goals()


def test_before_anything_is_asked_the_user_is_told_what_will_show_it() -> None:
    stated = GoalTest(name=A, source=GoalSource.STATED, got="[9, 0]", wanted="[9, 0, 0]")
    hint = GoalTest(name=B, source=GoalSource.WRITTEN, got="1")
    other = GoalTest(name=B, source=GoalSource.REPOSITORY)
    assert told_at_first(Goals(tests=(stated, hint))) == (f"shown by {A}: [9, 0], wanted [9, 0, 0]",)
    assert told_at_first(Goals(tests=(other, stated))) == (f"shown by {B}: fails (and by 1 more test)",)
    assert told_at_first(Goals(tests=(hint,))) == (NOTHING_WILL,)
    guess = replace(hint, call="f(2)", wanted="3")
    guided = "a model's guess guides the search: f(2): 1, wanted 3"
    assert told_at_first(Goals(tests=(guess,), commit="c")) == (NOTHING_WILL, guided)
    assert told_at_first(Goals(tests=(stated, guess), commit="c")) == told_at_first(Goals(tests=(stated,)))
    assert told_at_first(Goals(tests=(hint,), notes=("not here",))) == (), (
        "it was said when they were collected"
    )
    assert "--check" in NOTHING_WILL


@pytest.mark.parametrize(
    ("now", "after"),
    [
        ({A: "skipped"}, "skipped"),
        ({A: "xfailed"}, "skipped"),
        ({B: "passed"}, "missing"),
        ({A: "error"}, "fails"),
    ],
)
def test_what_is_not_passed_is_not_green(now: Mapping[str, Outcome], after: str) -> None:
    base = ran({A: "failed"})
    (seen,) = goal_outcomes(repository_goals(base), base, ran(now))
    assert (seen.green, seen.after) == (False, after)


def test_a_hint_that_is_in_no_tree_was_not_run() -> None:
    hint = GoalTest(name=B, source=GoalSource.WRITTEN, code="def test_b(): ...", got="1")
    (seen,) = goal_outcomes(Goals(tests=(hint,)), ran({A: "passed"}), ran({A: "passed"}))
    assert (seen.green, seen.after) == (False, "")
    stated = GoalTest(name=B, source=GoalSource.STATED, code="def test_b(): ...", got="1")
    (seen,) = goal_outcomes(Goals(tests=(stated,)), ran({A: "passed"}), ran({A: "passed"}))
    assert (seen.green, seen.after) == (False, "missing")


def test_what_passes_only_with_changed_tests_is_not_green() -> None:
    base = ran({A: "failed"})
    (seen,) = goal_outcomes(repository_goals(base), base, ran({A: "passed"}), (ran({A: "failed"}),))
    assert (seen.green, seen.after) == (False, ONLY_CHANGED)


def test_a_run_of_some_goal_tests_says_nothing_of_the_others() -> None:
    base = ran({A: "failed", B: "failed"})
    final, again = ran({A: "passed", B: "passed"}), ran({B: "failed"})
    seen = goal_outcomes(repository_goals(base), base, final, again=((B,), again))
    assert [(one.name, one.green) for one in seen] == [(A, True), (B, False)]


@pytest.mark.parametrize(
    ("name", "now", "green"),
    [
        ("t.py", {"t.py::a": "passed"}, True),
        ("t.py", {"other.py::a": "passed"}, False),
        ("t.py", {"t.py::a": "failed"}, False),
        ("t.py", {"t.py::a": "skipped"}, False),
        ("t.py", {}, False),
        ("unittest.loader._FailedTest.tests.test_a", {"tests.test_a.A.test": "passed"}, True),
        ("setUpClass (tests.test_a.A)", {}, False),
        ("T.setUpClass", {"T.test": "passed"}, True),
        (A, {B: "passed"}, False),
    ],
)
def test_a_file_that_could_not_be_loaded_is_green_once_tests_of_it_pass(
    name: str, now: Mapping[str, Outcome], *, green: bool
) -> None:
    base = ran({name: "error"})
    assert goal_outcomes(repository_goals(base), base, ran(now))[0].green is green


def test_of_many_red_tests_of_the_repository_some_are_kept_and_all_that_turned_green() -> None:
    names = [f"t.py::t{number:04}" for number in range(1000)]
    base = ran(dict.fromkeys(names, "failed"))
    goals = repository_goals(base)
    asked = GoalTest(name=B, source=GoalSource.STATED)
    after = ran({**dict.fromkeys(names, "failed"), names[-1]: "passed"})
    seen = goal_outcomes(Goals(tests=(*goals.tests, asked)), base, after)
    assert [one.name for one in seen if one.green] == [names[-1]]
    assert len(seen) == MAX_RED + 2
    assert seen[-1].name == B, "what the words ask for is never left out"


def test_a_runner_without_names_has_to_pass_more_tests() -> None:
    def unnamed(passed: int, outcomes: Mapping[str, Outcome]) -> TestRun:
        report = TestReport(runner="mocha", outcomes=outcomes, passed=passed, collected=3)
        return TestRun(command="mocha", end=CommandEnd(returncode=len(outcomes)), report=report)

    base = unnamed(2, {"adds": "failed"})
    goals = repository_goals(base)
    assert goal_outcomes(goals, base, unnamed(3, {}))[0].green
    assert not goal_outcomes(goals, base, unnamed(2, {}))[0].green, "it may be deleted"


def test_an_unfinished_run_shows_only_what_it_names() -> None:
    base = ran({A: "failed", "t.py": "error"})
    cut = pytest_run({A: "passed"})
    cut = replace(cut, report=replace(cut.report, whole=False))
    assert [one.green for one in goal_outcomes(repository_goals(base), base, cut)] == [False, True]


@pytest.mark.parametrize(
    ("evidence", "status"),
    [
        ((), RunStatus.UNPROVEN),
        ((outcome(GoalSource.REPOSITORY, green=True),), RunStatus.COMPLETE),
        ((outcome(GoalSource.REPOSITORY, green=False),), RunStatus.UNPROVEN),
        (
            (outcome(GoalSource.REPOSITORY, green=True), outcome(GoalSource.REPOSITORY, green=False)),
            RunStatus.COMPLETE,
        ),
        ((outcome(GoalSource.WRITTEN, trust="hint", green=True),), RunStatus.UNPROVEN),
        (
            (
                outcome(GoalSource.STATED, trust="shown", green=True),
                outcome(GoalSource.WRITTEN, trust="hint", green=False),
            ),
            RunStatus.COMPLETE,
        ),
        (
            (
                outcome(GoalSource.REPOSITORY, green=True),
                outcome(GoalSource.STATED, trust="shown", green=False),
            ),
            RunStatus.UNPROVEN,
        ),
        (
            (outcome(GoalSource.STATED, trust="shown", green=True), outcome(GoalSource.GIVEN, green=False)),
            RunStatus.PARTIAL,
        ),
    ],
)
def test_the_status_by_the_goal_tests(evidence: tuple[GoalOutcome, ...], status: RunStatus) -> None:
    found, reason = verdict_of(evidence)
    assert (found, bool(reason)) == (status, status is not RunStatus.COMPLETE)


def test_red_tests_of_what_the_task_names_are_a_doubt_while_they_stay_red() -> None:
    goals = Goals(related=("t.py::b", "t.py::c"))
    half = ran({"t.py::a": "passed", "t.py::b": "failed", "t.py::c": "passed", "t.py::d": "failed"})
    assert related_doubt(goals, half) == "tests of what the task names are still red: t.py::b"
    assert related_doubt(goals, ran({"t.py::a": "passed", "t.py::b": "passed"})) == ""


@pytest.mark.parametrize(
    ("path", "setup", "wanted", "check"),
    [
        ("t.py", "", "[9]", "f(1) == [9]"),
        ("t.test.ts", "", "[9]", "f(1) === [9]"),
        ("t.py", "x = 1", "[9]", ""),
        ("t.py", "", "raises KeyError", ""),
    ],
)
def test_a_guess_is_told_as_a_check_where_it_is_one(path: str, setup: str, wanted: str, check: str) -> None:
    guess = GoalTest(name=A, source=GoalSource.WRITTEN, path=path, call="f(1)", setup=setup, wanted=wanted)
    (seen,) = goal_outcomes(Goals(tests=(guess,)), ran({A: "failed"}), ran({A: "passed"}))
    assert seen.check == check
    stated = replace(guess, source=GoalSource.STATED)
    (seen,) = goal_outcomes(Goals(tests=(stated,)), ran({A: "failed"}), ran({A: "passed"}))
    assert seen.check == ""


def test_a_doubt_leaves_what_only_words_show_unproven() -> None:
    stated = outcome(GoalSource.STATED, trust="shown", green=True)
    assert verdict_of((stated,), doubt="two differ") == (RunStatus.UNPROVEN, "two differ")
    proof = outcome(GoalSource.REPOSITORY, trust="proof", green=True)
    assert verdict_of((stated, proof), doubt="two differ") == (RunStatus.COMPLETE, "")


def test_a_task_without_goal_tests_has_nothing_open() -> None:
    assert verdict_of(())[1] == NOTHING_SHOWS
    assert not has_open_goal((outcome(GoalSource.WRITTEN, trust="hint", green=False),))
    assert has_open_goal((outcome(GoalSource.STATED, trust="shown", green=False),))


def test_a_command_has_to_hold_with_the_tests_restored() -> None:
    base = ran({A: "passed"})
    goal = GoalTest(name="sh: ./c", source=GoalSource.GIVEN, command="./c", got="exit 1")
    goals = Goals(tests=(goal,))
    good, bad = CommandRun(returncode=0), CommandRun(returncode=4, line="no")
    for ends, green, after in (
        ((good, good), True, "exit 0"),
        ((good, bad), False, ONLY_CHANGED),
        ((bad, good), False, "exit 4: no"),
        ((), False, ""),
    ):
        (seen,) = goal_outcomes(goals, base, base, commands={"./c": ends})
        assert (seen.green, seen.after) == (green, after)


@pytest.mark.parametrize(
    ("goal", "changed", "may"),
    [
        (GoalTest(name="tests/t.py::a", source=GoalSource.REPOSITORY), {"tests/t.py"}, True),
        (GoalTest(name="tests/t.py::a", source=GoalSource.REPOSITORY), {"tests/u.py"}, False),
        (GoalTest(name="adds two", source=GoalSource.REPOSITORY), {"test/u.js"}, True),
        (GoalTest(name="adds two", source=GoalSource.STATED, path="test/t.js"), {"test/t.js"}, True),
        (GoalTest(name="adds two", source=GoalSource.STATED, path="test/t.js"), {"test/u.js"}, False),
        (GoalTest(name="sh: x", source=GoalSource.GIVEN, command="x"), {"tests/t.py"}, False),
        (GoalTest(name="tests/t.py::a", source=GoalSource.WRITTEN, path="tests/t.py"), {"tests/t.py"}, False),
        (GoalTest(name="adds two", source=GoalSource.REPOSITORY), set(), False),
    ],
)
def test_a_goal_test_may_stand_in_a_changed_file(goal: GoalTest, changed: set[str], *, may: bool) -> None:
    assert (changed_goals(Goals(tests=(goal,)), changed) == (goal.name,)) is may


def test_red_goal_tests_that_were_added_do_not_fail_the_gate() -> None:
    base, final = ran({A: "passed"}), ran({A: "passed", B: "failed"})
    assert not judge_final(base, final, "all-pass").complete
    assert judge_final(base, final, "all-pass", goals={B}).complete
    lost = ran({A: "failed", B: "failed"})
    assert judge_final(base, lost, "all-pass", goals={B}).newly_failing == (A,)
