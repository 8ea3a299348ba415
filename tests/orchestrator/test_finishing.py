import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace
from testing.runs.memory_run import MemoryProject, MemoryRun, memory_project, part_plan, step

from clean_room_agent.artifacts.goals import Goals, GoalSource, GoalTest
from clean_room_agent.artifacts.outcomes import EventKind, RunStatus
from clean_room_agent.artifacts.test_results import Outcome
from clean_room_agent.orchestrator.events import RunFinished
from clean_room_agent.orchestrator.finishing import JudgedResult, Solved, finish
from clean_room_agent.orchestrator.full_tests import run_baseline
from clean_room_agent.orchestrator.goal_verdict import repository_goals
from clean_room_agent.orchestrator.run import StepDone, StepFailed
from clean_room_agent.orchestrator.task import PlanGiven
from clean_room_agent.orchestrator.test_runs.deciding import NO_TRACE, Trace
from clean_room_agent.orchestrator.test_runs.gate import FAILED_BEFORE

FILES = {"a.py": "a = 0\n", "tests/test_a.py": "import a\n"}


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
    goals: Goals | None = None,
    keep: bool = True,
    exits: Callable[[str, Mapping[str, str]], int] | None = None,
) -> tuple[MemoryRun, Solved]:
    """A run that has accepted a step with these changes, at its end; by default its goals are the red tests of the base."""
    memory = project.open(lambda _: "", testing=testing, evidence={"keep": keep})
    memory.runner.exits = exits or memory.runner.exits
    run, plan = memory.run, memory.run.progress.plan
    baseline = run_baseline(run)
    run.progress.goals = repository_goals(baseline) if goals is None else goals
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
    run.progress.asked = given.paths if given is not None else frozenset()
    return memory, finish(run, baseline)


def judged(end: Solved) -> JudgedResult:
    assert end.judged is not None
    return end.judged


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
    assert judged(end).final is memory.run.progress.accepted


def test_where_nothing_was_accepted_there_is_no_branch(project: MemoryProject) -> None:
    lost = StepFailed(part_id="p1", step=step("s1", "a.py"), why="no edits")
    _, end = ended(project, None, failed=lost, parts=(0, 1))
    assert (end.result.status, end.result.reason) == (RunStatus.FAILED, "s1: no edits")
    assert (end.result.branch, end.result_commit, end.judged) == ("", "", None)
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
    assert not judged(end).verdict.complete


@pytest.mark.parametrize(
    ("accept", "text", "status", "reason"),
    [
        ("all-pass", "a = 1\n", RunStatus.PARTIAL, f"{FAILED_BEFORE}: tests/test_b.py::test"),
        ("no-new-failures", "a = 1\n", RunStatus.COMPLETE, ""),
        ("goals", "a = 1\n", RunStatus.COMPLETE, ""),
        ("untested", "a = 1\n", RunStatus.COMPLETE, ""),
        ("green", "a = 1\n", RunStatus.COMPLETE, ""),
        ("goals", "a = 2\n", RunStatus.PARTIAL, "failing: tests/test_a.py::test, tests/test_b.py::test"),
        ("all-pass", "a = 2\n", RunStatus.PARTIAL, "failing: tests/test_a.py::test, tests/test_b.py::test"),
    ],
)
def test_a_test_that_failed_before_and_is_no_goal_is_told_from_what_the_run_lacks(
    accept: str, text: str, status: RunStatus, reason: str, tmp_path: Path
) -> None:
    def other_fails(files: Mapping[str, str]) -> dict[str, Outcome]:
        return {**of_files(files), "tests/test_b.py::test": "failed"}

    mine = Goals(tests=(GoalTest(name="tests/test_a.py::test", source=GoalSource.REPOSITORY),))
    with memory_project(tmp_path, FILES, other_fails) as project:
        _, end = ended(project, {"a.py": text}, goals=mine, testing={"accept": accept})
    assert (end.result.status, end.result.reason) == (status, reason)


@pytest.mark.parametrize("goals", [None, Goals()], ids=["all are goals", "none is known"])
@pytest.mark.parametrize("accept", ["goals", "untested", "green", "all-pass"])
def test_of_several_red_tests_one_that_passes_is_not_enough(
    accept: str, goals: Goals | None, tmp_path: Path
) -> None:
    def other_fails(files: Mapping[str, str]) -> dict[str, Outcome]:
        return {**of_files(files), "tests/test_b.py::test": "failed"}

    with memory_project(tmp_path, FILES, other_fails) as project:
        _, end = ended(project, {"a.py": "a = 1\n"}, testing={"accept": accept}, goals=goals)
    assert (end.result.status, end.result.reason) == (RunStatus.PARTIAL, "failing: tests/test_b.py::test")


def test_a_test_that_broke_is_not_excused_by_one_that_failed_before(tmp_path: Path) -> None:
    def another_breaks(files: Mapping[str, str]) -> dict[str, Outcome]:
        broken: Outcome = "failed" if "= 1" in files["a.py"] else "passed"
        return {**of_files(files), "tests/test_b.py::test": "failed", "tests/test_c.py::test": broken}

    mine = Goals(tests=(GoalTest(name="tests/test_a.py::test", source=GoalSource.REPOSITORY),))
    with memory_project(tmp_path, FILES, another_breaks) as project:
        _, end = ended(project, {"a.py": "a = 1\n"}, goals=mine)
    assert (end.result.status, end.result.reason[:29]) == (RunStatus.PARTIAL, "newly failing: tests/test_c.p")


def test_what_comes_and_goes_is_not_held_against_a_result_beside_what_failed_before(tmp_path: Path) -> None:
    seen: list[bool] = []

    def flaky(files: Mapping[str, str]) -> dict[str, Outcome]:
        """`tests/test_c.py::test` fails in the first two runs of the result: the step's and the final one."""
        seen.append("= 1" in files["a.py"])
        comes: Outcome = "failed" if 1 <= sum(seen) <= 2 and seen[-1] else "passed"
        return {**of_files(files), "tests/test_b.py::test": "failed", "tests/test_c.py::test": comes}

    mine = Goals(tests=(GoalTest(name="tests/test_a.py::test", source=GoalSource.REPOSITORY),))
    with memory_project(tmp_path, FILES, flaky) as project:
        _, end = ended(project, {"a.py": "a = 1\n"}, goals=mine)
    assert (end.result.status, end.result.reason) == (RunStatus.COMPLETE, "")


def test_an_exit_code_that_no_test_explains_is_not_told_as_a_failing_test(tmp_path: Path) -> None:
    mine = Goals(tests=(GoalTest(name="tests/test_a.py::test", source=GoalSource.REPOSITORY),))
    with memory_project(tmp_path, FILES, of_files) as project:
        project.exit_code = 1
        _, end = ended(project, {"a.py": "a = 1\n"}, goals=mine)
    assert end.result.status is RunStatus.PARTIAL
    assert end.result.reason == "the command exits with 1 though no test fails"


def test_a_result_that_turned_no_red_test_green_is_unproven(tmp_path: Path) -> None:
    with memory_project(tmp_path, FILES, lambda _: {"t": "passed"}) as project:
        _, end = ended(project, {"a.py": "a = 1\n"})
    assert end.result.status is RunStatus.UNPROVEN
    assert end.result.reason.startswith("nothing fails, and nothing shows that the task is done")
    assert end.result.branch, "it lands as a complete one does"
    assert end.result.evidence == ()


def test_evidence_names_what_went_from_red_to_green(project: MemoryProject) -> None:
    _, end = ended(project, {"a.py": "a = 1\n"})
    (one,) = end.result.evidence
    assert (one.name, one.source, one.trust, one.green) == (
        "tests/test_a.py::test",
        GoalSource.REPOSITORY,
        "proof",
        True,
    )
    assert json.loads(dict(project.events())[EventKind.EVIDENCE])[0]["name"] == one.name


def test_a_goal_test_that_passes_only_as_the_result_changes_it_shows_nothing(tmp_path: Path) -> None:
    def weakened(files: Mapping[str, str]) -> dict[str, Outcome]:
        green = "= 1" in files["a.py"] or "weak" in files["tests/test_a.py"]
        return {"tests/test_a.py::test": "passed" if green else "failed", "tests/test_a.py::other": "passed"}

    given = PlanGiven(single=part_plan(step("s1", "a.py", "tests/test_a.py")))
    with memory_project(tmp_path, FILES, weakened) as project:
        _, end = ended(project, {"tests/test_a.py": "weak\n"}, given)
        assert (end.result.status, end.result.evidence[0].green) == (RunStatus.UNPROVEN, False)
        assert end.result.reason == (
            "tests/test_a.py::test passes only with what the result changes about the tests"
        )
        _, end = ended(project, {"tests/test_a.py": "weak\n", "a.py": "a = 1\n"}, given)
        assert end.result.status is RunStatus.COMPLETE, "it passes with the test as it was, too"


def with_goal(source: GoalSource, files: Mapping[str, str], project: MemoryProject) -> Goals:
    """A goal test of this source that was added, in a commit of these files."""
    goal = GoalTest(
        name="tests/test_g.py::test", source=source, path="tests/test_g.py", code="x", got="1", wanted="2"
    )
    return Goals(tests=(goal,), commit=project.history.add({**project.files, **files}))


ADDED = {"tests/test_g.py": "goal\n"}


def goal_green_if_two(files: Mapping[str, str]) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {"tests/test_a.py::test": "passed"}
    if "goal" in files.get("tests/test_g.py", ""):
        found["tests/test_g.py::test"] = "passed" if "= 2" in files["a.py"] else "failed"
    return found


@pytest.mark.parametrize(
    ("source", "text", "status"),
    [
        (GoalSource.STATED, "a = 2\n", RunStatus.COMPLETE),
        (GoalSource.DOCUMENTED, "a = 2\n", RunStatus.COMPLETE),
        (GoalSource.GIVEN, "a = 2\n", RunStatus.COMPLETE),
        (GoalSource.WRITTEN, "a = 2\n", RunStatus.UNPROVEN),
        (GoalSource.STATED, "a = 1\n", RunStatus.UNPROVEN),
        (GoalSource.DOCUMENTED, "a = 1\n", RunStatus.UNPROVEN),
        (GoalSource.WRITTEN, "a = 1\n", RunStatus.UNPROVEN),
        (GoalSource.GIVEN, "a = 1\n", RunStatus.PARTIAL),
    ],
)
def test_a_goal_test_that_was_added_decides_by_its_trust(
    tmp_path: Path, source: GoalSource, text: str, status: RunStatus
) -> None:
    with memory_project(tmp_path, FILES, goal_green_if_two) as project:
        goals = with_goal(source, ADDED, project)
        _, end = ended(project, {"a.py": text, **ADDED}, goals=goals)
        assert end.result.status is status, end.result.reason
        assert judged(end).touched == (), "it is no change of the result"
        assert end.result.evidence[0].after == ("2" if text == "a = 2\n" else "fails")


@pytest.mark.parametrize(
    ("text", "source", "status"),
    [
        ("a = 2\n", GoalSource.STATED, RunStatus.UNPROVEN),
        ("a = 2  # both\n", GoalSource.STATED, RunStatus.COMPLETE),
        ("a = 2\n", GoalSource.GIVEN, RunStatus.COMPLETE),
    ],
)
def test_where_red_tests_of_what_the_task_names_stay_red_words_alone_prove_nothing(
    tmp_path: Path, text: str, source: GoalSource, status: RunStatus
) -> None:
    def two(files: Mapping[str, str]) -> dict[str, Outcome]:
        mended: Outcome = "passed" if "both" in files["a.py"] else "failed"
        return {**goal_green_if_two(files), "tests/test_a.py::test_other": mended}

    with memory_project(tmp_path, FILES, two) as project:
        goals = replace(with_goal(source, ADDED, project), related=("tests/test_a.py::test_other",))
        _, end = ended(project, {"a.py": text, **ADDED}, goals=goals, testing={"accept": "no-new-failures"})
        assert end.result.status is status
        assert ("test_other" in end.result.reason) is (status is RunStatus.UNPROVEN)


def test_a_result_that_makes_a_goal_test_weaker_is_judged_by_the_test_as_it_was_added(tmp_path: Path) -> None:
    def weakened(files: Mapping[str, str]) -> dict[str, Outcome]:
        found = goal_green_if_two(files)
        if "weak" in files.get("tests/test_g.py", ""):
            found["tests/test_g.py::test"] = "passed"
        return found

    with memory_project(tmp_path, FILES, weakened) as project:
        goals = with_goal(GoalSource.STATED, ADDED, project)
        _, end = ended(project, {"a.py": "a = 1\n", "tests/test_g.py": "goal, weak\n"}, goals=goals)
        assert end.result.status is RunStatus.UNPROVEN
        assert not end.result.evidence[0].green


def test_where_only_goal_tests_were_added_nothing_is_landed(tmp_path: Path) -> None:
    with memory_project(tmp_path, FILES, goal_green_if_two) as project:
        goals = with_goal(GoalSource.STATED, ADDED, project)
        memory = project.open(lambda _: "")
        baseline = run_baseline(memory.run)
        memory.run.progress.goals = goals
        memory.run.commits.head = goals.commit
        end = finish(memory.run, baseline)
    assert (end.result.status, end.result.branch, end.result_commit) == (RunStatus.FAILED, "", "")


def test_goal_tests_that_are_not_to_be_kept_are_not_on_the_branch(tmp_path: Path) -> None:
    with memory_project(tmp_path, FILES, goal_green_if_two) as project:
        goals = with_goal(GoalSource.STATED, ADDED, project)
        memory, end = ended(project, {"a.py": "a = 2\n", **ADDED}, goals=goals, keep=False)
        assert end.result.status is RunStatus.COMPLETE
        assert project.history.files[end.result_commit] == {**FILES, "a.py": "a = 2\n"}
        assert project.history.refs[end.result.branch] == end.result_commit
        assert "tests/test_g.py" in project.history.files[memory.run.commits.head], "what was tested is kept"
        assert "test_g" not in end.result.cumulative_diff


@pytest.mark.parametrize(("code", "status"), [(0, RunStatus.COMPLETE), (3, RunStatus.PARTIAL)])
def test_a_command_that_was_given_is_run_at_the_end(tmp_path: Path, code: int, status: RunStatus) -> None:
    goal = GoalTest(name="sh: ./check", source=GoalSource.GIVEN, command="./check", got="exit 1")
    with memory_project(tmp_path, FILES, lambda _: {"t": "passed"}) as project:
        _, end = ended(
            project,
            {"a.py": "a = 1\n"},
            goals=Goals(tests=(goal,)),
            exits=lambda _, files: code if files["a.py"] == "a = 1\n" else 1,
        )
    assert end.result.status is status, end.result.reason
    after = "exit 0" if code == 0 else "exit 3: ./check says 3"
    assert (end.result.evidence[0].before, end.result.evidence[0].after) == ("exit 1", after)


def test_configuration_of_the_tests_that_the_model_adds_is_taken_away_to_judge(
    project: MemoryProject,
) -> None:
    _, end = ended(project, {"conftest.py": "import os\n"})
    assert end.result.status is RunStatus.PARTIAL
    assert (
        "the tests pass only with what the result changes about them; without conftest.py"
        in end.result.reason
    )
    restored = judged(end).restored
    assert restored is not None
    assert restored.red() == {"tests/test_a.py::test"}
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
    assert judged(end).restored is None
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
    assert [(one.path, one.kind, one.change) for one in judged(end).touched] == [
        (path, "test support", "changed")
    ]
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
    assert {one.path for one in judged(end).touched if one.left_out} == set(deleting)


@pytest.mark.parametrize(("example", "touched"), [("2", True), ("1", False)])
@pytest.mark.parametrize(("path", "name"), [("a.py", "a"), ("b/__init__.py", "b.f"), ("src/b/c.py", "b.c.f")])
def test_examples_in_docstrings_are_tests(
    tmp_path: Path, path: str, name: str, example: str, *, touched: bool
) -> None:
    before, after = '"""\n>>> a\n1\n"""\n', f'"""\n>>> a\n{example}\n"""\na = 3\n'

    def green(_: Mapping[str, str]) -> dict[str, Outcome]:
        return {f"{path}::{name}": "passed"}

    with memory_project(tmp_path, {**FILES, path: before}, green) as project:
        _, end = ended(project, {path: after})
    assert [one.kind for one in judged(end).touched] == (["test"] if touched else [])


def test_tests_in_files_of_other_names_are_listed(tmp_path: Path) -> None:
    def green(_: Mapping[str, str]) -> dict[str, Outcome]:
        return {"checks/check_a.py::test": "passed"}

    with memory_project(tmp_path, {**FILES, "checks/check_a.py": ""}, green) as project:
        _, end = ended(project, {"checks/check_a.py": "a = 3\n"})
    assert [(one.path, one.kind) for one in judged(end).touched] == [("checks/check_a.py", "test")]
