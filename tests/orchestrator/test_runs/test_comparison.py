from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.test_results import Outcome, TestReport
from clean_room_agent.orchestrator.test_runs.comparison import what_tests_showed
from clean_room_agent.orchestrator.test_runs.gate import judge_step, left_undone
from clean_room_agent.orchestrator.test_runs.results import CommandEnd, TestRun


def run(*failing: FailingTest, whole: bool = True, **outcomes: Outcome) -> TestRun:
    found: dict[str, Outcome] = {**dict.fromkeys((test.name for test in failing), "failed"), **outcomes}
    return TestRun(
        command="pytest",
        end=CommandEnd(returncode=int(bool(failing))),
        report=TestReport(
            runner="pytest",
            named=True,
            whole=whole,
            outcomes=found,
            passed=list(found.values()).count("passed"),
        ),
        failing=failing,
    )


def fails(name: str, message: str = "no") -> FailingTest:
    return FailingTest(name=name, message=message)


def test_goal_tests_are_those_that_were_red_before_the_step() -> None:
    before = run(fails("a"), fails("b"), fails("c", "1 != 2"), fails("d"), e="passed")
    after = run(fails("b"), fails("c", "1 != 3"), fails("e"), a="passed")
    tested = what_tests_showed(before, after, judge_step(before, after))
    assert [(goal.name, goal.state) for goal in tested.goals] == [
        ("a", "passes now"),
        ("b", "fails as before"),
        ("c", "fails in another way"),
        ("d", "did not run"),
    ]
    assert tested.goals[2].failing == fails("c", "1 != 3")
    assert tested.newly_failing == (fails("e"),)


def test_a_skipped_goal_test_does_not_pass() -> None:
    before, after = run(fails("a")), run(a="skipped")
    assert what_tests_showed(before, after, judge_step(before, after)).goals[0].state == "did not run"


def test_a_file_that_could_not_be_loaded_passes_when_its_tests_run() -> None:
    before, after = run(fails("tests/test_a.py")), run(fails("tests/test_a.py::test_new"))
    tested = what_tests_showed(before, after, judge_step(before, after))
    assert tested.goals[0].state == "passes now"
    assert tested.new == (fails("tests/test_a.py::test_new"),)


def test_a_test_that_no_longer_runs_is_missing() -> None:
    before, after = run(a="passed", b="passed"), run(fails("tests/test_a.py"), b="passed")
    tested = what_tests_showed(before, after, judge_step(before, after))
    assert tested.missing == ("a",)
    assert (tested.newly_failing, tested.new) == ((fails("tests/test_a.py"),), ())


def test_what_is_red_beside_tests_that_were_turned_is_left_undone() -> None:
    base = run(*map(fails, ("t/a.py::x", "t/a.py::y", "t/b.py::z", "m.A.one", "m.B.one")))
    assert left_undone(base, run(fails("t/a.py::y"), fails("t/b.py::z"))) == {"t/a.py::y"}
    assert left_undone(base, run(fails("t/b.py::z"))) == set()
    assert left_undone(base, base) == base.red()
    classes = run(*map(fails, ("m.A.one", "m.A.two", "m.B.one")))
    assert left_undone(classes, run(fails("m.A.two"), fails("m.B.one"))) == {"m.A.two"}


def test_a_test_that_could_be_loaded_and_fails_is_left_undone() -> None:
    assert left_undone(run(fails("t/a.py")), run(fails("t/a.py::x"))) == {"t/a.py::x"}
