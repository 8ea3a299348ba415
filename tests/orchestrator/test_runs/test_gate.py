import re
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.test_results import Outcome, TestReport, merge
from clean_room_agent.languages.test_names import is_in
from clean_room_agent.orchestrator.run_config import Accept
from clean_room_agent.orchestrator.test_runs import gate
from clean_room_agent.orchestrator.test_runs.gate import (
    FinalVerdict,
    StepVerdict,
    TestFiles,
    judge_final,
    judge_restored,
    judge_step,
    left_undone,
    newly_failing,
    what_tests_showed,
)
from clean_room_agent.orchestrator.test_runs.results import CommandEnd, TestRun
from clean_room_agent.orchestrator.test_runs.test_commands import Watched


def pytest_run(returncode: int | None = None, command: str = "pytest", **outcomes: Outcome) -> TestRun:
    """Keyword `a` is the test t.py::a."""
    red = any(outcome in {"failed", "error"} for outcome in outcomes.values())
    return TestRun(
        command=command,
        end=CommandEnd(returncode=int(red) if returncode is None else returncode),
        report=TestReport(
            runner="pytest",
            outcomes={f"t.py::{name}": outcome for name, outcome in sorted(outcomes.items())},
            named=True,
            collected=len(outcomes),
            passed=list(outcomes.values()).count("passed"),
        ),
    )


def counted_run(passed: int, *red: str, runner: str = "mocha") -> TestRun:
    """A run whose runner names only what fails."""
    return TestRun(
        command="npm test",
        end=CommandEnd(returncode=len(red)),
        report=TestReport(
            runner=runner,
            outcomes=merge((name, "failed") for name in red),
            collected=passed + len(red),
            passed=passed,
        ),
    )


def unread_run(returncode: int, *, timed_out: bool = False) -> TestRun:
    return TestRun(
        command="./t",
        end=CommandEnd(returncode=returncode, timed_out=timed_out),
        report=TestReport(whole=not timed_out),
    )


def cut_short(run: TestRun, *, problem: str = "", timed_out: bool = False) -> TestRun:
    """The run, which did not come to its end."""
    report = replace(run.report, whole=False, problem=problem)
    return replace(run, end=replace(run.end, timed_out=timed_out), report=report)


def test_a_red_test_that_the_task_is_about_may_stay_red() -> None:
    verdict = judge_step(pytest_run(a="passed", b="failed"), pytest_run(a="passed", b="failed"))
    assert verdict.passed
    assert verdict.reason == "1 pass, 1 still red"


def test_a_new_test_may_be_red_in_a_step_and_not_in_the_result() -> None:
    before, after = pytest_run(a="passed"), pytest_run(a="passed", new="failed")
    assert judge_step(before, after).passed
    for accept in ("all-pass", "no-new-failures"):
        verdict = judge_final(before, after, accept)
        assert (verdict.complete, verdict.newly_failing) == (False, ("t.py::new",))


@pytest.mark.parametrize("accept", ["all-pass", "no-new-failures"])
def test_where_there_are_no_tests_nothing_passes(accept: Accept) -> None:
    none = pytest_run(5)
    assert not judge_step(none, none, accept).passed
    assert not judge_final(none, none, accept).complete


def test_where_the_user_says_that_there_are_no_tests_nothing_is_claimed() -> None:
    none = pytest_run(5)
    said = "nothing was tested: the test command finds no tests"
    assert judge_step(none, none, "untested") == StepVerdict(passed=True, reason=said)
    assert judge_final(none, none, "untested") == FinalVerdict(complete=True, reason=said)


@pytest.mark.parametrize(
    ("before", "after", "passes"),
    [
        (pytest_run(5), pytest_run(a="failed"), False),
        (pytest_run(5), pytest_run(a="passed"), True),
        (pytest_run(a="passed"), pytest_run(5), False),
        (pytest_run(5), cut_short(pytest_run(5)), False),
        (pytest_run(5), unread_run(0, timed_out=True), False),
    ],
)
def test_where_there_are_tests_after_all_they_count(before: TestRun, after: TestRun, passes: bool) -> None:
    assert judge_final(before, after, "untested").complete is passes


@pytest.mark.parametrize("outcome", ["failed", "error", "skipped", "xfailed"])
def test_what_passed_must_pass_again(outcome: Outcome) -> None:
    before, after = pytest_run(a="passed", b="passed"), pytest_run(a=outcome, b="passed")
    assert judge_step(before, after).newly_failing == ("t.py::a",)
    assert not judge_final(before, after, "all-pass").complete
    assert not judge_final(before, after, "no-new-failures").complete


def test_a_missing_test_fails_unless_the_plan_changes_or_deletes_its_file() -> None:
    before, after = pytest_run(a="passed"), pytest_run(b="passed")
    assert judge_step(before, after).newly_failing == ("t.py::a",)
    assert judge_step(before, after).reason == "missing: t.py::a"
    both = judge_step(pytest_run(a="passed", b="passed"), pytest_run(b="failed"))
    assert both.reason == "newly failing: t.py::b; missing: t.py::a"
    assert not judge_step(before, after, planned=("sub/t.py",)).passed
    assert judge_step(before, after, planned=("t.py",)).passed
    assert judge_final(before, after, "all-pass", planned=("t.py",)).complete
    assert judge_final(before, after, "no-new-failures", planned=("t.py",)).complete


def with_names(run: TestRun, **outcomes: Outcome) -> TestRun:
    """The run with further results; of keyword `u_py`, the name is u.py."""
    named = {name.replace("__", "::").replace("_py", ".py"): outcome for name, outcome in outcomes.items()}
    return replace(run, report=replace(run.report, outcomes={**run.report.outcomes, **named}))


@pytest.mark.parametrize("was", ["failed", "passed", "skipped"])
def test_a_file_that_can_no_longer_be_loaded_is_newly_failing_whatever_its_tests_were(was: Outcome) -> None:
    before = with_names(pytest_run(a="passed"), u_py__b=was)
    after = with_names(pytest_run(a="passed"), u_py="error")
    verdict = judge_step(before, after)
    assert not verdict.passed
    assert "u.py" in verdict.newly_failing
    assert judge_step(before, after, planned=("u.py",)).newly_failing == ("u.py",)
    assert judge_step(after, after).passed  # it was so before


def test_a_new_file_of_tests_may_wait_for_what_it_tests() -> None:
    before, after = pytest_run(a="passed"), with_names(pytest_run(a="passed"), u_py="error")
    assert judge_step(before, after, files=TestFiles(created=("u.py",))).passed
    assert not judge_step(before, after).passed


@pytest.mark.parametrize("now", [None, "skipped", "xfailed"])
@pytest.mark.parametrize("planned", [(), ("t.py",)])
def test_a_failure_of_the_base_may_not_vanish_in_a_step(
    now: Outcome | None, planned: tuple[str, ...]
) -> None:
    base = pytest_run(a="passed", b="failed")
    after = pytest_run(a="passed") if now is None else pytest_run(a="passed", b=now)
    verdict = judge_step(base, after, planned=planned, base=base)
    assert not verdict.passed
    assert verdict.reason == "failed at the start, and no longer run: t.py::b"
    assert judge_step(base, after, planned=planned, base=base, unstable=("t.py::b",)).passed


def test_a_changed_file_may_not_lose_tests_unless_that_was_meant_and_never_all() -> None:
    before = with_names(pytest_run(x="passed"), u_py__a="passed", u_py__b="passed")
    fewer = with_names(pytest_run(x="passed"), u_py__a="passed")
    other = with_names(pytest_run(x="passed"), u_py__a="passed", u_py__c="passed")
    meant, kept = TestFiles(), TestFiles(kept=("u.py",))
    assert judge_step(before, fewer, planned=("u.py",), files=meant).passed
    assert judge_step(before, other, planned=("u.py",), files=kept).passed
    lost = judge_step(before, fewer, planned=("u.py",), files=kept)
    assert lost.reason == "u.py had 2 tests and has 1, without u.py::b"
    emptied = judge_step(before, pytest_run(x="passed"), planned=("u.py",), files=meant)
    assert emptied.reason == "u.py has no test any more: u.py::a, u.py::b"
    assert judge_step(
        before, pytest_run(x="passed"), planned=("u.py",), files=TestFiles(deleted=("u.py",))
    ).passed


def test_cases_of_one_test_count_once() -> None:
    def cases(*values: str) -> TestRun:
        run = pytest_run(x="passed")
        outcomes: dict[str, Outcome] = {
            **run.report.outcomes,
            **{f"u.py::a[{value}]": "passed" for value in values},
        }
        return replace(run, report=replace(run.report, outcomes=outcomes))

    kept = TestFiles(kept=("u.py",))
    assert judge_step(cases("1", "2"), cases("3"), planned=("u.py",), files=kept).passed


def test_runs_of_two_commands_are_compared_by_the_tests_that_both_know() -> None:
    before = pytest_run(a="passed", b="passed")
    assert judge_step(before, pytest_run(command="pytest -k b", b="passed")).passed
    assert judge_step(before, pytest_run(command="pytest -k b", b="failed")).newly_failing == ("t.py::b",)


def test_an_unstable_test_leaves_the_gate_and_is_reported() -> None:
    before, after = pytest_run(a="passed", b="passed"), pytest_run(a="failed", b="passed")
    assert judge_step(before, after, unstable=("t.py::a",)).passed
    verdict = judge_final(before, after, "all-pass", unstable=("t.py::a",))
    assert verdict.complete
    assert "unstable, not counted: t.py::a" in verdict.reason


def test_what_failed_before_may_fail_only_by_one_rule() -> None:
    before, after = (
        pytest_run(a="failed", b="error", c="passed"),
        pytest_run(a="passed", b="failed", c="passed"),
    )
    assert judge_final(before, after, "no-new-failures").complete
    assert not judge_final(before, after, "all-pass").complete


def test_no_new_failures_wants_as_many_tests_as_before() -> None:
    verdict = judge_final(pytest_run(a="passed", b="failed"), pytest_run(a="passed"), "no-new-failures")
    assert (verdict.complete, verdict.reason) == (False, "2 tests ran at the start, 1 now")


def test_an_exit_code_that_no_test_explains_fails() -> None:
    green = pytest_run(a="passed")
    assert not judge_step(green, pytest_run(returncode=2, a="passed")).passed
    assert not judge_final(green, pytest_run(returncode=2, a="passed"), "all-pass").complete
    assert judge_step(pytest_run(returncode=2, a="passed"), pytest_run(returncode=2, a="passed")).passed


def below(
    run: TestRun, line: str = "ERROR: Coverage failure: total of 43 is less than fail-under=95"
) -> TestRun:
    """The run, at whose end too little was covered."""
    return replace(run, end=replace(run.end, returncode=1, excerpt=f"..\n{line}\n1 passed"))


@pytest.mark.parametrize("accept", ["all-pass", "no-new-failures"])
def test_a_command_that_fails_as_before_though_no_test_does_keeps_nothing_from_being_complete(
    accept: Accept,
) -> None:
    green, red = pytest_run(a="passed", b="passed"), pytest_run(a="failed", b="passed")
    assert judge_final(below(green), below(green), accept).complete
    assert judge_final(below(red), below(green), accept).complete
    assert judge_final(red, below(green), accept).complete  # pytest && coverage report
    assert judge_final(
        pytest_run(returncode=3, a="passed"), pytest_run(returncode=3, a="passed"), accept
    ).complete


def test_a_command_that_fails_otherwise_than_before_is_told_with_its_reason() -> None:
    green = pytest_run(a="passed")
    assert not judge_final(pytest_run(returncode=2, a="passed"), below(green), "all-pass").complete
    enough = below(pytest_run(a="failed"), "Required test coverage of 40% reached. Total coverage: 43.00%")
    assert not judge_final(enough, below(green), "all-pass").complete
    verdict = judge_final(green, below(green), "all-pass")
    said = "the command exits with 1 though no test fails: ERROR: Coverage failure: total of 43 is less than fail-under=95"
    assert (verdict.complete, verdict.reason) == (False, said)
    assert judge_step(green, below(green)).reason == f"{said} (0 before)"


def test_a_run_in_which_everything_was_skipped_completes_nothing() -> None:
    skipped = pytest_run(a="skipped")
    assert not judge_final(skipped, skipped, "all-pass").complete


@pytest.mark.parametrize(
    "after",
    [
        TestRun(
            command="pytest",
            end=CommandEnd(returncode=0),
            report=TestReport(runner="pytest", whole=False, problem="no report"),
        ),
        TestRun(
            command="pytest",
            end=CommandEnd(returncode=-9, timed_out=True),
            report=TestReport(runner="pytest", whole=False, problem="stopped"),
        ),
        TestRun(command="pytest", end=CommandEnd(returncode=0), report=TestReport(runner="unknown")),
        TestRun(
            command="pytest",
            end=CommandEnd(returncode=0),
            report=TestReport(runner="pytest", collected=0, named=True),
        ),
    ],
    ids=["cut", "timed out", "not pytest any more", "collected nothing"],
)
def test_exit_0_or_not_a_run_that_is_not_whole_passes_nothing(after: TestRun) -> None:
    before = pytest_run(a="failed")
    assert not judge_step(before, after).passed
    assert not judge_final(before, after, "all-pass").complete
    assert not judge_final(before, after, "no-new-failures").complete


def test_a_run_that_hung_after_its_report_still_names_what_failed() -> None:
    before = pytest_run(a="passed", b="passed")
    hung = cut_short(pytest_run(a="failed"), problem="stopped", timed_out=True)
    verdict = judge_step(before, hung)
    assert (verdict.passed, verdict.newly_failing, verdict.reason) == (False, ("t.py::a",), "stopped")


CUT = TestRun(
    command="pytest",
    end=CommandEnd(returncode=1),
    report=TestReport(runner="pytest", whole=False, problem="no report"),
)


@pytest.mark.parametrize("accept", ["all-pass", "no-new-failures", "untested"])
def test_after_a_start_that_could_not_be_counted_nothing_is_complete(accept: Accept) -> None:
    assert judge_step(CUT, pytest_run(a="failed", b="passed")).passed
    verdict = judge_final(CUT, pytest_run(a="passed"), accept)
    said = "the tests could not be counted before the change: no report"
    assert (verdict.complete, verdict.reason) == (False, said)


def counted(**outcomes: Outcome) -> TestRun:
    """A run at the base that died, and was completed by further ones."""
    run = cut_short(pytest_run(**outcomes), problem="no report")  # type: ignore[arg-type]
    return replace(run, report=replace(run.report, counted=True))


def test_after_a_start_that_was_counted_a_green_run_is_complete() -> None:
    before = counted(a="passed", b="error", c="skipped")
    assert judge_final(before, pytest_run(a="passed", b="passed", c="skipped"), "all-pass").complete
    lenient = judge_final(before, pytest_run(a="passed", b="failed", c="skipped"), "no-new-failures")
    assert "no failure is excused" in lenient.reason
    assert judge_step(before, pytest_run(a="failed", b="passed")).newly_failing == ("t.py::a",)


@pytest.mark.parametrize("accept", ["all-pass", "no-new-failures"])
@pytest.mark.parametrize("now", ["skipped", "xfailed", None])
def test_what_ended_the_process_at_the_start_must_run_at_the_end(accept: Accept, now: Outcome | None) -> None:
    after: dict[str, Outcome] = {"a": "passed", "new": "passed", **({"b": now} if now else {})}
    now_run = pytest_run(**after)  # type: ignore[arg-type]
    verdict = judge_final(counted(a="passed", b="error"), now_run, accept, planned=("t.py",))
    assert (verdict.complete, "t.py::b" in verdict.reason) == (False, True)


def test_a_failing_test_may_not_give_way_to_a_new_one() -> None:
    before, after = pytest_run(a="passed", b="failed"), pytest_run(a="passed", new="passed")
    verdict = judge_final(before, after, "no-new-failures", planned=("t.py",))
    assert verdict.reason == "failed at the start, and no longer run: t.py::b"


def test_a_process_that_ends_early_is_excused_by_a_whole_start_alone() -> None:
    after = replace(pytest_run(a="passed", b="passed"), watched=Watched(ended=False))
    died = replace(counted(a="passed", b="error"), watched=Watched(ended=False))
    assert not judge_final(died, after, "all-pass").complete
    before = replace(pytest_run(a="passed", b="failed"), watched=Watched(ended=False))
    assert judge_final(before, after, "all-pass").complete
    assert not judge_final(died, replace(after, watched=Watched()), "all-pass").complete


def unloaded(name: str = "t.py", **written: bool) -> TestRun:
    """A run in which the file could not be loaded; keyword `a` is the test t.py::a in its text."""
    run = pytest_run(x="passed")
    outcomes: dict[str, Outcome] = {"u.py::x": "passed", name: "error"}
    tests = {f"t.py::{test}": runs for test, runs in written.items()}
    return replace(run, report=replace(run.report, outcomes=outcomes, written=tests))


def pytest_names(**outcomes: Outcome) -> TestRun:
    """Keyword `a` is the test t.py::a, which runs beside u.py::x."""
    run = pytest_run(**outcomes)  # type: ignore[arg-type]
    return replace(run, report=replace(run.report, outcomes={"u.py::x": "passed", **run.report.outcomes}))


def test_a_file_that_could_not_be_loaded_must_run_the_tests_that_its_text_had() -> None:
    before = unloaded(a=True, b=False)
    assert judge_final(before, pytest_names(a="passed", b="skipped"), "all-pass").complete
    for after in (
        pytest_names(a="skipped", b="passed"),
        pytest_names(a="passed"),
        pytest_names(new="passed"),
    ):
        verdict = judge_final(before, after, "all-pass", planned=("t.py",))
        assert verdict.reason.startswith("could not be loaded at the start, and do not run now: t.py::")


@pytest.mark.parametrize(
    "before", [unloaded(a=True), unloaded()], ids=["its tests are known", "they are not"]
)
def test_a_file_that_cannot_be_loaded_before_and_after_is_one_that_failed_before(before: TestRun) -> None:
    if not before.report.written:
        before = replace(before, report=replace(before.report, uncounted=("t.py",)))
    after = replace(before, report=replace(before.report, written={}, uncounted=()))
    assert judge_final(before, after, "no-new-failures").complete
    assert not judge_final(before, after, "all-pass").complete
    assert not judge_final(before, after, "no-new-failures", planned=("t.py",)).complete


def test_cases_of_a_test_count_as_the_test() -> None:
    cases: dict[str, Outcome] = {"a[1]": "passed", "a[2]": "passed"}
    after = pytest_names(**cases)
    assert judge_final(unloaded(a=True), after, "all-pass").complete


def test_a_module_has_the_tests_of_its_file() -> None:
    before = unloaded("unittest.loader._FailedTest.tests.t")
    before = replace(before, report=replace(before.report, written={"tests/t.py::T::a": True}))
    names: dict[str, Outcome] = {"u.py::x": "passed", "tests.t.T.a": "passed"}
    after = pytest_run()
    after = replace(after, report=replace(after.report, outcomes=names, passed=2))
    assert judge_final(before, after, "all-pass").complete
    names["tests.t.T.a"] = "skipped"
    assert not judge_final(before, after, "all-pass").complete


def test_text_counts_only_for_files_that_run_or_change() -> None:
    before = counted()
    before = replace(before, report=replace(before.report, written={"other/v.py::a": True}))
    after = pytest_names(a="passed")
    assert judge_final(before, after, "all-pass").complete
    assert not judge_final(before, after, "all-pass", planned=("other/v.py",)).complete


def test_a_file_whose_tests_are_unknown_may_not_change() -> None:
    before = unloaded("a.test.js")
    before = replace(before, report=replace(before.report, uncounted=("a.test.js",)))
    after = pytest_names(a="passed")
    verdict = judge_final(before, after, "all-pass", planned=("a.test.js",))
    assert verdict.reason == "could not be loaded at the start, and changed: a.test.js"


def test_a_file_whose_tests_are_unknown_must_run_some_and_skip_none() -> None:
    before = unloaded("a.test.js")
    before = replace(before, report=replace(before.report, uncounted=("a.test.js",)))
    said = {}
    for outcomes in (
        {},
        {"a.test.js > b": "passed", "a.test.js > c": "skipped"},
        {"a.test.js > b": "passed"},
    ):
        after = pytest_names()
        after = replace(
            after, report=replace(after.report, outcomes={"u.py::x": "passed", **outcomes}, passed=2)
        )
        said[len(outcomes)] = judge_final(before, after, "all-pass").reason
    assert said == {
        0: "could not be loaded at the start, and runs no test now: a.test.js",
        1: "2 tests pass",
        2: "could not be loaded at the start, and skipped: a.test.js > c",
    }


def test_tests_that_were_kept_need_not_be_counted_if_all_of_them_run() -> None:
    for before in (CUT, unread_run(1)):
        assert not judge_final(before, pytest_run(a="passed"), "all-pass").complete
        assert judge_final(before, pytest_run(a="passed"), "all-pass", kept=True).complete
        skipping = pytest_run(a="passed", b="skipped")
        assert not judge_final(before, skipping, "all-pass", kept=True).complete


def test_what_only_runs_with_the_tests_restored_was_hidden() -> None:
    before, final = unloaded(a=True), pytest_names(a="passed")
    restored = pytest_names(a="passed", hidden="passed")
    assert judge_restored(before, final, pytest_names(a="passed")).passed
    verdict = judge_restored(before, final, restored)
    assert (verdict.passed, verdict.reason) == (False, "not run in the result: t.py::hidden")


def test_where_only_failures_have_names_the_counts_must_hold() -> None:
    assert judge_step(counted_run(3, "x"), counted_run(3, "x")).passed
    assert judge_step(counted_run(3, "x"), counted_run(2, "x", "y")).newly_failing == ("y",)
    assert not judge_step(counted_run(3), counted_run(2)).passed
    assert judge_step(counted_run(3), counted_run(2), planned=("gone.js",)).passed
    assert judge_final(counted_run(3, "x"), counted_run(4), "all-pass").complete
    assert not judge_final(counted_run(3), counted_run(2), "all-pass").complete
    assert not judge_final(counted_run(3, "x"), counted_run(2, "x"), "no-new-failures").complete


def test_for_an_unread_runner_the_exit_code_decides() -> None:
    assert judge_step(unread_run(0), unread_run(0)).passed
    assert not judge_step(unread_run(0), unread_run(1)).passed
    assert judge_final(unread_run(1), unread_run(0), "no-new-failures").complete
    assert not judge_final(unread_run(1), unread_run(1), "no-new-failures").complete


def test_for_an_unread_runner_with_a_red_baseline_only_the_final_run_gates() -> None:
    verdict = judge_step(unread_run(1), unread_run(1))
    assert (verdict.passed, "the final run decides" in verdict.reason) == (True, True)
    assert not judge_step(unread_run(1), unread_run(-9, timed_out=True)).passed


def test_names_are_found_in_their_files() -> None:
    assert is_in("tests/test_a.py::T::t", ["tests/test_a.py"])
    assert not is_in("a.py::t", ["sub/a.py"])
    assert is_in("tests/test_a.py", ["tests/test_a.py"])
    assert is_in("test_a.Case.test_x", ["tests/test_a.py"])
    assert is_in("v/a.test.js > suite > t", ["v/a.test.js"])
    assert not is_in("outer > t", ["outer.js"])


def test_newly_failing_names_are_sorted_and_few_are_spelt_out() -> None:
    before = pytest_run(**dict.fromkeys("hgfedcba", "passed"))  # type: ignore[arg-type]
    after = pytest_run(z="passed")
    assert newly_failing(before, after) == tuple(f"t.py::{name}" for name in "abcdefgh")
    assert judge_step(before, after).reason.endswith("t.py::e and 3 more")


def test_the_worked_example_holds() -> None:
    rows = [line.split() for line in (gate.__doc__ or "").splitlines() if line.startswith("    t.py::")]
    before, *after = (
        pytest_run(**{name.removeprefix("t.py::"): cells[run] for name, *cells in rows if cells[run] != "-"})  # type: ignore[arg-type]
        for run in range(4)
    )
    said = re.findall(r'^    [ABC]: may (stay|not): "(.*?)"', gate.__doc__ or "", re.MULTILINE)
    verdicts = [judge_step(before, run) for run in after]
    assert [("stay" if verdict.passed else "not", verdict.reason) for verdict in verdicts] == said
    strict, lenient = (judge_final(before, after[0], accept) for accept in ("all-pass", "no-new-failures"))
    assert (strict.complete, lenient.complete) == (False, True)
    assert f'"{strict.reason}"' in (gate.__doc__ or "")
    assert f'"{lenient.reason}"' in (gate.__doc__ or "")


def test_where_tests_have_no_names_those_that_failed_may_not_be_skipped() -> None:
    def unnamed(passed: int, outcomes: Mapping[str, Outcome]) -> TestRun:
        report = TestReport(runner="unittest", outcomes=outcomes, collected=3, passed=passed)
        return TestRun(command="c", end=CommandEnd(returncode=1 if outcomes else 0), report=report)

    baseline = unnamed(2, {"t.A.a": "failed"})
    assert judge_final(baseline, unnamed(3, {}), "all-pass").complete
    assert "more tests are skipped" in judge_final(baseline, unnamed(2, {}), "all-pass").reason
    assert not judge_final(baseline, unnamed(2, {}), "no-new-failures").complete


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
