"""Events of `go test -json`, recorded from a tiny module, and, where there is a Go, asked for anew."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.orchestrator.test_runs.tiny_project import Runner, Write

from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.artifacts.test_results import Failure, Reading
from clean_room_agent.languages.go.go_test_runner import GoTestRunner
from clean_room_agent.languages.test_runner import EndedCommand, guard_folder
from clean_room_agent.orchestrator.test_runs.command_runner import rerun_command
from clean_room_agent.orchestrator.test_runs.gate import judge_final, judge_step

GO = GoTestRunner()
COMMAND = "go test ./..."
MONEY = "package till\n\nfunc Split(total, n int) int { return total / n }\n"
TESTS = """package till

import "testing"

func TestSplit(t *testing.T) {
	if got := Split(7, 2); got != 4 {
		t.Errorf("Split(7, 2) = %d, want %d", got, 4)
	}
}

func TestEven(t *testing.T) {
	for _, total := range []int{2, 4} {
		t.Run("a case", func(t *testing.T) { Split(total, 2) })
	}
}
"""
FILES = {"go.mod": "module example.com/till\n\ngo 1.19\n", "money.go": MONEY, "money_test.go": TESTS}
T = "money_test.go::"
OUTCOMES = {f"{T}TestEven": "passed", f"{T}TestEven/a_case": "passed", f"{T}TestEven/a_case#01": "passed"}
PANIC = """panic: assignment to entry in nil map [recovered]
	panic: assignment to entry in nil map

goroutine 18 [running]:
panic({0x508ec0, 0x551cc0})
	/usr/lib/go-1.19/src/runtime/panic.go:884 +0x212
example.com/till.(*Till).Add(...)
	/tree/money.go:11
example.com/till.TestSplit(0x0?)
	/tree/money_test.go:4 +0x2e
"""


def event(action: str, test: str = "", output: str = "") -> str:
    return json.dumps({"Action": action, "Package": "example.com/till", "Test": test, "Output": output})


def ran(test: str, end: str, output: str = "") -> list[str]:
    lines = [event("output", test, line) for line in output.splitlines(keepends=True)]
    return [event("run", test), *lines, *([event(end, test)] if end else [])]


def read(
    top: Path, lines: list[str], *, files: Mapping[str, str] = FILES, text: str = "", code: int = 1
) -> Reading:
    report = top / "report.xml"
    guard_folder(report).mkdir()
    (guard_folder(report) / "go-0.json").write_text("\n".join(lines))
    for name, content in files.items():
        (top / name).write_text(content)
    reading = GO.read(EndedCommand(command=COMMAND, returncode=code, text=text, report=report, cwd=top))
    assert reading is not None
    return reading


def failure(reading: Reading) -> Failure:
    (found,) = reading.failures
    return found


def test_a_log_tells_what_was_compared_and_where(tmp_path: Path) -> None:
    said = "    money_test.go:7: Split(7, 2) = 3, want 4\n--- FAIL: TestSplit (0.00s)\n"
    lines = [*ran("TestEven", "pass"), *ran("TestSplit", "fail", said), event("fail")]
    got = read(tmp_path, lines)
    assert got.report.outcomes == {f"{T}TestEven": "passed", f"{T}TestSplit": "failed"}
    assert (got.report.whole, got.report.collected, got.report.passed) == (True, 2, 1)
    found = failure(got)
    assert (found.expected, found.actual, found.message) == ("4", "3", "Split(7, 2) = 3, want 4")
    assert found.frames == (StackFrame(path="money_test.go", line=7, function="TestSplit"),)
    assert said in f"{got.shown}\n"


@pytest.mark.parametrize(
    ("said", "expected", "actual"),
    [
        ("Split(7, 2) = 3, want 4", "4", "3"),
        ("got [1 2]; want [2 1]", "[2 1]", "[1 2]"),
        ('expected methods "GET" but got: ""', 'methods "GET"', '""'),
        ("Expected 6 calls, but got only 0", "6 calls", "0"),
        ("want 3, got", "3", "''"),
        ("Not equal:\n        expected: 1\n        actual  : 2", "1", "2"),
        ("no such thing", "", ""),
    ],
)
def test_values_are_read_from_the_usual_words(said: str, expected: str, actual: str, tmp_path: Path) -> None:
    lines = [*ran("TestSplit", "fail", f"    money_test.go:7: {said}\n"), event("fail")]
    found = failure(read(tmp_path, lines))
    assert (found.expected, found.actual) == (expected, actual)


def test_a_panic_tells_its_frames_and_tests_that_did_not_run_are_missing(tmp_path: Path) -> None:
    got = read(tmp_path, [*ran("TestSplit", "fail", PANIC), event("fail")])
    assert got.report.outcomes == {f"{T}TestSplit": "failed"}
    found = failure(got)
    assert found.message.startswith("panic: assignment to entry in nil map")
    assert found.frames[1:] == (
        StackFrame(path="/tree/money.go", line=11, function="Add"),
        StackFrame(path="/tree/money_test.go", line=4, function="TestSplit"),
    )
    assert tuple(GO.frames(PANIC)) == found.frames


def test_a_subtest_is_told_for_the_test_around_it(tmp_path: Path) -> None:
    lines = [event("run", "TestEven"), *ran("TestEven/two", "fail", "    money_test.go:13: no\n")]
    got = read(tmp_path, [*lines, event("fail", "TestEven"), event("fail")])
    assert set(got.report.outcomes.values()) == {"failed"}
    assert failure(got).name == f"{T}TestEven/two"


@pytest.mark.parametrize("newer", [False, True])
def test_of_a_package_that_cannot_be_built_the_files_of_tests_fail(newer: bool, tmp_path: Path) -> None:
    said = "# example.com/till [example.com/till.test]\n./money_test.go:6:12: undefined: Split\n"
    end = "FAIL\texample.com/till [build failed]"
    lines = [event("output", "", f"{end}\n"), event("fail")] if newer else [end]
    got = read(tmp_path, lines, text=said)
    assert got.report.outcomes == {"money_test.go": "error"}
    assert (got.report.whole, failure(got).message) == (True, "./money_test.go:6:12: undefined: Split")
    assert (failure(got).path, failure(got).line) == ("money_test.go", 6)


def test_what_code_prints_like_a_passed_test_counts_only_where_a_file_declares_it(tmp_path: Path) -> None:
    forged = [*ran("TestGone", "pass", "--- PASS: TestGone (0.00s)\n"), *ran("TestEven", "pass")]
    assert read(tmp_path, [*forged, event("pass")], code=0).report.outcomes == {f"{T}TestEven": "passed"}


def test_an_end_behind_half_a_line_is_found_and_a_test_without_one_broke(tmp_path: Path) -> None:
    lines = [*ran("TestEven", "", "no newline--- PASS: TestEven (0.00s)\n"), *ran("TestSplit", "")]
    got = read(tmp_path, [*lines, event("fail")])
    assert got.report.outcomes == {f"{T}TestEven": "passed", f"{T}TestSplit": "error"}


@pytest.mark.parametrize("lines", [[], ran("TestEven", "pass")])
def test_a_run_that_ended_early_is_not_whole(lines: list[str], tmp_path: Path) -> None:
    got = read(tmp_path, lines, text="go: no such thing")
    assert not got.report.whole
    assert got.report.problem.endswith("(exit 1): go: no such thing")


def test_no_package_is_no_test(tmp_path: Path) -> None:
    got = read(tmp_path, [], code=0)
    assert (got.report.whole, got.report.collected) == (True, 0)


R = '> "$CRA_TEST_REPORTS/go-{}.json"'


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("go test ./...", f"go test -json ./... {R.format(0)}"),
        ("cd a && CGO_ENABLED=0 go test -race 'b c'", f"cd a && CGO_ENABLED=0 go test -json -race 'b c' {R.format(0)}"),
        (
            "go vet ./... && go test ./a; (go test ./b)",
            f"go vet ./... && go test -json ./a {R.format(0)}; (go test -json ./b {R.format(1)})",
        ),
        ("go test -json ./...", None),
        ("go test ./... | tee log", None),
        ("go test ./... > log", None),
        ("go test -c", None),
        ("echo go test; pytest", None),
        ("make test", None),
    ],
)  # fmt: skip
def test_the_events_are_asked_for_where_nothing_else_reads_the_output(
    command: str, asked: str | None
) -> None:
    assert GO.asked(command) == (asked or command)


def test_some_tests_are_run_by_their_functions() -> None:
    names = [f"{T}TestEven/a_case#01", f"{T}TestSplit"]
    assert (
        GO.only("go test -race ./...", names) == "go test -count=1 -run '^(TestEven|TestSplit)$' -race ./..."
    )
    assert GO.only("make test", names) is None


@pytest.mark.skipif(shutil.which("go") is None, reason="needs go")
def test_a_fix_is_judged_by_what_go_reports(write: Write, run: Runner) -> None:
    write(FILES)
    before = run(COMMAND)
    assert before.report.outcomes == {**OUTCOMES, f"{T}TestSplit": "failed"}
    assert (before.failing[0].expected, before.failing[0].statement[:10]) == ("4", 't.Errorf("')
    again = rerun_command(before, before.red())
    assert again is not None
    assert set(run(again).report.outcomes) == {f"{T}TestSplit"}
    write({"money.go": MONEY.replace("total / n", "(total + n - 1) / n")})
    assert judge_final(before, run(COMMAND), "all-pass", planned=("money.go",)).complete
    write({"money_test.go": TESTS.partition("func TestEven")[0]})
    assert judge_step(before, run(COMMAND)).newly_failing == tuple(OUTCOMES)
    write({"money_test.go": TESTS, "money.go": "package till\n"})
    assert "money_test.go" in judge_step(before, run(COMMAND)).newly_failing
