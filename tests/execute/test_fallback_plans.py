import pytest
from msgspec.structs import replace
from testing.packages import package, shown_file

from clean_room_agent.artifacts.context import ContextPackage, DroppedItem
from clean_room_agent.artifacts.plans import Part, TargetFile
from clean_room_agent.execute.edits.rules import Places
from clean_room_agent.execute.fallback_plans import (
    MAX_FILES,
    MAX_WORDS,
    files_in_scope,
    whole_part,
    whole_task,
)
from clean_room_agent.execute.plan_validation import meta_plan_faults, part_plan_faults

TASK = "Make x two."
PATHS = frozenset({"a.py", "b.py", "till/money.py"})


def scope(shown: ContextPackage) -> tuple[str, ...]:
    return files_in_scope(shown, protected=("*.key",), scripts=("run.sh",))


def test_the_scope_is_what_was_shown_best_first_then_what_did_not_fit() -> None:
    shown = package(
        shown_file("outlined.py", "x\n", detail="supporting", tier=2),
        shown_file("found.py", "x\n", tier=4),
        shown_file("whole.py", "x\n", tier=2),
        shown_file("named.py", "x\n", detail="supporting", tier=1),
    )
    dropped = DroppedItem(path="large.py", detail="primary", tokens=9000, reason="does not fit")
    assert scope(replace(shown, dropped=(dropped,))) == (
        "named.py",
        "whole.py",
        "outlined.py",
        "found.py",
        "large.py",
    )


@pytest.mark.parametrize("path", ["tests/test_a.py", "conftest.py", "run.sh"])
def test_what_decides_whether_tests_pass_is_in_scope_only_where_the_task_names_it(path: str) -> None:
    assert scope(package(shown_file(path, "x\n"))) == ()
    assert scope(package(shown_file(path, "x\n"), task=f"Mend {path}.")) == (path,)


def test_what_no_edit_may_touch_is_never_in_scope() -> None:
    shown = package(
        shown_file("secret.key", "x\n"), shown_file(".git/config", "x\n"), task="secret.key .git/config"
    )
    assert scope(shown) == ()


def test_signatures_and_callers_are_not_what_is_to_be_changed() -> None:
    assert scope(package(replace(shown_file("a.py", "x\n"), section="callers"))) == ()


def test_the_whole_task_is_a_valid_plan_of_one_part() -> None:
    plan = whole_task("Make x two.\n", tuple(f"{name}.py" for name in "abcdef"), "no valid plan: no JSON")
    assert meta_plan_faults(plan, max_parts=1) == ()
    (part,) = plan.parts
    assert (part.description, len(part.affected_files)) == ("Make x two.", MAX_FILES)
    assert plan.rationale == "no valid plan: no JSON"


def test_a_long_task_stands_for_itself_by_its_beginning() -> None:
    plan = whole_task("word " * 500, ("a.py",), "")
    assert len(plan.task_summary) <= MAX_WORDS + 4
    assert plan.task_summary.endswith("word ...")


def test_a_part_is_one_step_over_the_files_that_it_names() -> None:
    part = Part(id="p1", description="Change x.", affected_files=("money.py", "a.py", "new.py"))
    plan = whole_part(part, TASK, ("b.py",), PATHS)
    assert plan is not None
    assert part_plan_faults(plan, paths=PATHS, max_steps=1) == ()
    (step,) = plan.steps
    assert step.target_files == (
        TargetFile(path="till/money.py"),
        TargetFile(path="a.py"),
        TargetFile(path="new.py", role="create"),
    )
    assert step.any_of_files


def test_a_part_that_names_no_file_takes_those_in_scope() -> None:
    plan = whole_part(Part(id="p1", description="Change x."), TASK, ("b.py",), PATHS)
    assert plan is not None
    (step,) = plan.steps
    assert (step.description, step.target_files) == ("Change x.", (TargetFile(path="b.py"),))


def test_names_that_no_file_of_the_tree_is_like_are_not_created() -> None:
    files = ("finester", "1.1.2.1.0", "b.rs")
    plan = whole_part(Part(id="p1", description="Change x.", affected_files=files), TASK, ("b.py",), PATHS)
    assert plan is not None
    assert plan.steps[0].target_files == (TargetFile(path="b.py"),)


@pytest.mark.parametrize(("task", "created"), [(TASK, False), ("Add tests/test_x.py.", True)])
def test_a_test_file_is_created_only_where_the_task_names_it(task: str, created: bool) -> None:
    part = Part(id="p1", description="Change x.", affected_files=("a.py", "tests/test_x.py"))
    plan = whole_part(part, task, ("b.py",), PATHS)
    assert plan is not None
    assert (TargetFile(path="tests/test_x.py", role="create") in plan.steps[0].target_files) is created


def test_where_there_is_no_file_there_is_no_step() -> None:
    assert whole_part(Part(id="p1", description="Change x."), TASK, (), PATHS) is None


def test_a_path_where_no_file_can_be_is_left_out() -> None:
    places = Places(PATHS, {"link.py": "a link"})
    part = Part(id="p1", description="Change x.", affected_files=("link.py", "a.py/b.py", "new.py"))
    plan = whole_part(part, TASK, ("b.py",), places)
    assert plan is not None
    assert plan.steps[0].target_files == (TargetFile(path="new.py", role="create"),)
