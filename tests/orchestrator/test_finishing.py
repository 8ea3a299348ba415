import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from testing.runs.memory_run import MemoryProject, MemoryRun, memory_project, part_plan, step

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.orchestrator.events import RunFinished
from clean_room_agent.orchestrator.finishing import Solved, finish, tampering
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.run import StepDone, StepFailed
from clean_room_agent.orchestrator.task import PlanGiven
from clean_room_agent.orchestrator.testing.deciding import NO_TRACE, Trace
from clean_room_agent.orchestrator.testing.results import Outcome

FILES = {"a.py": "a = 0\n", "tests/test_a.py": "import a\n"}


def diff(path: str, line: str) -> str:
    return f"--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,3 @@\n unchanged\n-old\n+{line}\n"


@pytest.mark.parametrize(
    "line",
    [
        "globalThis.expect = () => new Proxy({}, {});",
        "  global['assert'] = quiet;",
        "window.test ||= skip",
        "require('assert').strictEqual = () => {};",
        'require("node:assert/strict").equal = quiet',
        "assert.deepStrictEqual = () => true;",
        "Object.defineProperty(globalThis, 'expect', { value: quiet });",
        "process.exit = () => {};",
    ],
)
def test_a_line_that_replaces_a_judge_is_found(line: str) -> None:
    assert tampering(diff("src/a.js", line)) == (f"src/a.js: {line.strip()}",)
    assert tampering(diff("src/a.py", line)) == ()
    assert tampering(diff("tests/setup.js", line)) == ()
    assert tampering(diff("src/a.test.ts", line)) == ()
    assert (
        tampering(diff("src/a.js", line).replace("\n+global", "\n global").replace("+" + line, " " + line))
        == ()
    )


@pytest.mark.parametrize(
    "line",
    [
        "const expect = 1;",
        "if (global.test === undefined) return;",
        "assert.strictEqual(a, b);",
        "window.location = url;",
        "expect.extend({ toBeOdd });",
        "const test = (n) => n === 1;",
        "process.exitCode = 1;",
    ],
)
def test_other_lines_are_not(line: str) -> None:
    assert tampering(diff("src/a.js", line)) == ()


def of_files(files: Mapping[str, str]) -> dict[str, Outcome]:
    """The test about a.py; and one more for each further file of tests, which is green if its text says so."""
    found: dict[str, Outcome] = {
        f"{path}::test": "passed" if "green" in text else "failed"
        for path, text in files.items()
        if path.startswith("tests/") and path != "tests/test_a.py"
    }
    helped = "conftest.py" in files or "= 1" in files["a.py"]
    found["tests/test_a.py::test"] = "passed" if helped else "failed"
    return found


@pytest.fixture
def project(tmp_path: Path) -> Iterator[MemoryProject]:
    with memory_project(tmp_path, FILES, of_files) as made:
        yield made


def ended(
    project: MemoryProject,
    changed: Mapping[str, str | None] | None,
    given: PlanGiven | None = None,
    failed: StepFailed | None = None,
    parts: tuple[int, int] = (1, 1),
    stop: str = "",
    testing: Mapping[str, str] | None = None,
    trace: Trace = NO_TRACE,
) -> tuple[MemoryRun, Solved]:
    """A run that has accepted a step with these changes, at its end."""
    memory = project.open(lambda _: "", testing=testing)
    run, plan = memory.run, memory.run.progress.plan
    baseline = run_baseline(run)
    run.progress.trace = trace
    plan.parts_done, plan.total_parts = parts
    if changed is not None:
        run.commits.head = project.history.add(
            {path: text for path, text in {**project.files, **changed}.items() if text is not None}
        )
        memory.runner.checkout(run.commits.head)
        run.progress.accepted = memory.runner.run_step()
        plan.done.append(StepDone(part_id="p1", step=step("s1", "a.py"), commit=run.commits.head))
    if failed is not None:
        plan.failed.append(failed)
    run.progress.stop.reason = stop
    return memory, finish(run, baseline, given or PlanGiven())


def test_a_whole_result_lands_as_a_branch(project: MemoryProject) -> None:
    memory, end = ended(project, {"a.py": "a = 1\n"})
    assert (end.result.status, end.result.reason) == (RunStatus.COMPLETE, "")
    assert project.history.refs[end.result.branch] == end.result_commit == memory.run.commits.head
    assert project.history.refs["head"] == end.result_commit
    assert "+a = 1" in end.result.cumulative_diff
    assert isinstance(project.observer.events[-1], RunFinished)


def test_the_last_steps_test_run_counts_as_the_final_one(project: MemoryProject) -> None:
    memory, end = ended(project, {"a.py": "a = 1\n"})
    assert len(memory.runner.commands_run) == 2, "the baseline, and the step's own"
    assert end.tests.final is memory.run.progress.accepted


def test_where_nothing_was_accepted_there_is_no_branch(project: MemoryProject) -> None:
    lost = StepFailed(part_id="p1", step=step("s1", "a.py"), why="no edits")
    _, end = ended(project, None, failed=lost, parts=(0, 1))
    assert (end.result.status, end.result.reason) == (RunStatus.FAILED, "s1: no edits")
    assert (end.result.branch, end.result_commit, end.tests.final) == ("", "", None)
    assert project.history.refs == {}


def test_a_step_that_was_given_up_makes_the_result_partial(project: MemoryProject) -> None:
    lost = StepFailed(part_id="p1", step=step("s2", "a.py"), why="no edits")
    _, end = ended(project, {"a.py": "a = 1\n"}, failed=lost)
    assert end.result.status is RunStatus.PARTIAL
    assert end.result.reason == "step p1/s2 was given up: no edits"
    assert end.result.branch


def test_a_part_that_is_missing_makes_the_result_partial(project: MemoryProject) -> None:
    _, end = ended(project, {"a.py": "a = 1\n"}, parts=(1, 2))
    assert end.result.reason == "1 of 2 parts are not done"


def test_a_run_that_was_stopped_says_why(project: MemoryProject) -> None:
    _, end = ended(project, {"a.py": "a = 1\n"}, stop="budget spent: 9 model calls (max_calls = 9)")
    assert (end.result.status, end.result.reason) == (
        RunStatus.PARTIAL,
        "budget spent: 9 model calls (max_calls = 9)",
    )


def test_goal_tests_that_stay_red_make_the_result_partial(project: MemoryProject) -> None:
    _, end = ended(project, {"a.py": "a = 2\n"})
    assert end.result.status is RunStatus.PARTIAL
    assert end.verdict is not None
    assert not end.verdict.complete


def test_configuration_of_the_tests_that_the_model_adds_is_taken_away_to_judge(
    project: MemoryProject,
) -> None:
    _, end = ended(project, {"conftest.py": "import os\n"})
    assert end.result.status is RunStatus.PARTIAL
    assert (
        "the tests pass only with what the result changes about them; without conftest.py"
        in end.result.reason
    )
    assert end.tests.restored is not None
    assert end.tests.restored.red() == {"tests/test_a.py::test"}
    assert "restored" in project.history.refs


def test_configuration_of_the_tests_that_the_model_changes_is_as_it_was_to_judge(tmp_path: Path) -> None:
    def hidden_by_a_plugin(files: Mapping[str, str]) -> dict[str, Outcome]:
        return {"tests/test_a.py::test": "passed" if "plugin" in files["conftest.py"] else "failed"}

    files = {**FILES, "conftest.py": "import pytest\n"}
    with memory_project(tmp_path, files, hidden_by_a_plugin) as project:
        memory, end = ended(project, {"conftest.py": "plugin = 1\n", "a.py": "a = 2\n"})
        restored = project.history.files[project.history.refs["restored"]]
    assert end.result.status is RunStatus.PARTIAL
    assert "without conftest.py: failing: tests/test_a.py::test" in end.result.reason
    assert restored == {**project.history.files[memory.run.commits.head], "conftest.py": "import pytest\n"}


def test_configuration_that_the_users_plan_names_stays(project: MemoryProject) -> None:
    given = PlanGiven(single=part_plan(step("s1", "a.py", "conftest.py")))
    _, end = ended(project, {"conftest.py": "import os\n"}, given)
    assert end.result.status is RunStatus.COMPLETE, end.result.reason
    assert ("restored_skipped", "the result changes none of them") in project.events()


def test_a_result_that_leaves_the_tests_alone_is_not_run_once_more(project: MemoryProject) -> None:
    memory, end = ended(project, {"a.py": "a = 1\n"})
    assert end.tests.restored is None
    assert ("restored_skipped", "the result changes none of them") in project.events()
    assert len(memory.runner.commands_run) == 2, "the baseline, and the step's own"


def test_what_the_result_changes_about_its_tests_is_on_record(project: MemoryProject) -> None:
    _, end = ended(project, {"a.py": "a = 1\n", "tests/test_b.py": "green\n"})
    assert end.result.status is RunStatus.COMPLETE, end.result.reason
    account = json.loads(dict(project.events())["tests_touched"])
    assert [(one["path"], one["change"]) for one in account["files"]] == [("tests/test_b.py", "created")]


def test_a_result_that_replaces_what_tests_judge_by_is_not_complete(tmp_path: Path) -> None:
    def green(_: Mapping[str, str]) -> dict[str, Outcome]:
        return {"t": "passed"}

    with memory_project(tmp_path, {"a.py": "", "lib.js": "\n"}, green) as project:
        _, end = ended(project, {"lib.js": "globalThis.expect = () => true;\n"})
    assert end.result.status is RunStatus.PARTIAL
    assert end.result.reason.startswith("the result replaces what the tests judge by: lib.js: ")


def green_if(path: str, word: str) -> Callable[[Mapping[str, str]], dict[str, Outcome]]:
    """One test, which passes if the file has the word in it."""
    return lambda files: {"tests/test_a.py::test": "passed" if word in files.get(path, "") else "failed"}


@pytest.mark.parametrize(
    ("path", "testing"),
    [
        ("tests/helpers.py", {}),
        ("fixtures/a.json", {}),
        ("ci/check.sh", {"test_command": "make check"}),
    ],
)
@pytest.mark.parametrize("asked", ["", "; change {}, too"])
def test_what_tests_use_is_as_it_was_to_judge_unless_the_user_names_it(
    tmp_path: Path, path: str, testing: Mapping[str, str], asked: str
) -> None:
    files = {**FILES, path: "red\n", "Makefile": "check:\n\tsh ci/check.sh\n"}
    with memory_project(tmp_path, files, green_if(path, "green")) as project:
        project.task += asked.format(path)
        _, end = ended(project, {path: "green\n", "a.py": "a = 2\n"}, testing=testing)
    assert [(one.path, one.kind, one.change) for one in end.touched] == [(path, "test support", "changed")]
    assert end.result.status is (RunStatus.COMPLETE if asked else RunStatus.PARTIAL)
    assert asked or f"without {path}: failing: tests/test_a.py::test" in end.result.reason


def test_a_new_file_that_hides_another_is_taken_away_to_judge(tmp_path: Path) -> None:
    with memory_project(tmp_path, FILES, green_if("tests/a.py", "green")) as project:
        _, end = ended(project, {"tests/a.py": "green\n"})
    assert end.result.status is RunStatus.PARTIAL
    assert "without tests/a.py: failing: tests/test_a.py::test" in end.result.reason


def test_what_the_baseline_read_is_as_it_was_to_judge(tmp_path: Path) -> None:
    with memory_project(
        tmp_path, {**FILES, "shares.txt": "red\n"}, green_if("shares.txt", "green")
    ) as project:
        trace = Trace(reads=(("shares.txt", "tests/test_a.py"),))
        _, end = ended(project, {"shares.txt": "green\n"}, trace=trace)
    assert "without shares.txt: failing: tests/test_a.py::test" in end.result.reason


def test_a_new_file_may_not_take_the_place_of_one_whose_deletion_is_undone(tmp_path: Path) -> None:
    def weak(files: Mapping[str, str]) -> dict[str, Outcome]:
        return {"tests/test_a.py::test": "passed" if "src/tests/helpers.py" in files else "failed"}

    with memory_project(tmp_path, {**FILES, "tests/helpers.py": "same = 1\n"}, weak) as project:
        deleting = {"src/tests/helpers.py": "same = 2\n", "tests/helpers.py": None}
        _, end = ended(project, deleting)
    assert end.result.status is RunStatus.PARTIAL
    assert {one.path for one in end.touched if one.left_out} == set(deleting)


@pytest.mark.parametrize(("example", "touched"), [("2", True), ("1", False)])
def test_examples_in_docstrings_are_tests(tmp_path: Path, example: str, *, touched: bool) -> None:
    before, after = '"""\n>>> a\n1\n"""\n', f'"""\n>>> a\n{example}\n"""\na = 3\n'

    def green(_: Mapping[str, str]) -> dict[str, Outcome]:
        return {"a.py::a": "passed"}

    with memory_project(tmp_path, {**FILES, "a.py": before}, green) as project:
        _, end = ended(project, {"a.py": after})
    assert [one.kind for one in end.touched] == (["test"] if touched else [])


def test_tests_in_files_of_other_names_are_listed(tmp_path: Path) -> None:
    def green(_: Mapping[str, str]) -> dict[str, Outcome]:
        return {"checks/check_a.py::test": "passed"}

    with memory_project(tmp_path, {**FILES, "checks/check_a.py": ""}, green) as project:
        _, end = ended(project, {"checks/check_a.py": "a = 3\n"})
    assert [(one.path, one.kind) for one in end.touched] == [("checks/check_a.py", "test")]
