import pytest

from clean_room_agent.artifacts.plans import (
    FileRole,
    MetaPlan,
    Part,
    PartPlan,
    PlanAdjustment,
    PlanStep,
    TargetFile,
)
from clean_room_agent.execute.edits.rules import Places
from clean_room_agent.execute.plan_validation import (
    adjustment_faults,
    corrected_steps,
    in_order,
    meta_plan_faults,
    mistyped,
    only_match,
    part_plan_faults,
    place_faults,
)

PATHS = (
    "till/__init__.py",
    "till/money.py",
    "till/notes.md",
    "docs/notes.md",
    "tests/__init__.py",
    "setup.py",
)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("money.py", "till/money.py"),
        ("src/till/money.py", "till/money.py"),
        ("src/money.py", "till/money.py"),
        ("/till/money.py", "till/money.py"),
        ("till\\money.py", "till/money.py"),
        ("lib/docs/notes.md", ""),
        ("notes.md", ""),
        ("__init__.py", ""),
        ("/usr/lib/money.py", ""),
        ("../till/money.py", ""),
        ("y.py", ""),
        ("", ""),
        ("/", ""),
    ],
)
def test_a_path_is_another_file_only_where_it_can_be_no_second(written: str, meant: str) -> None:
    assert only_match(written, PATHS) == meant


def step(name: str, *files: tuple[str, FileRole]) -> PlanStep:
    targets = tuple(TargetFile(path=path, role=role) for path, role in files)
    return PlanStep(id=name, description="Do it.", target_files=targets)


def written(*steps: PlanStep) -> tuple[list[list[tuple[str, FileRole]]], tuple[str, ...]]:
    right, notes = corrected_steps(steps, PATHS)
    return [[(file.path, file.role) for file in each.target_files] for each in right], notes


def test_a_file_to_create_that_exists_is_modified() -> None:
    files, notes = written(step("s1", ("setup.py", "create")))
    assert (files, notes) == ([[("setup.py", "modify")]], ("setup.py exists: to be modified, not created",))


def test_what_the_plan_itself_creates_or_clears_away_stays_as_written() -> None:
    steps = (
        step("s1", ("money.py", "create"), ("setup.py", "delete")),
        step("s2", ("money.py", "modify"), ("setup.py", "create"), ("nowhere.py", "modify")),
    )
    files, notes = written(*steps)
    assert files == [[(file.path, file.role) for file in each.target_files] for each in steps]
    assert notes == ()


def part(name: str, *needs: str, files: tuple[str, ...] = (), description: str = "Do it.") -> Part:
    return Part(id=name, description=description, affected_files=files, depends_on=needs)


def step_of_plan_validation(
    name: str,
    *needs: str,
    files: tuple[TargetFile, ...] = (TargetFile(path="a.py"),),
    description: str = "Do it.",
) -> PlanStep:
    return PlanStep(id=name, description=description, target_files=files, depends_on=needs)


def meta(*parts: Part) -> MetaPlan:
    return MetaPlan(task_summary="s", parts=parts)


def steps_plan(*steps: PlanStep) -> PartPlan:
    return PartPlan(part_id="p1", task_summary="s", steps=steps)


EXISTING = frozenset({"a.py", "b.py"})


def test_a_sound_plan_has_no_faults() -> None:
    assert meta_plan_faults(meta(part("p2", "p1"), part("p1", files=("a.py", "new.py"))), max_parts=2) == ()
    files = (TargetFile(path="new.py", role="create"),)
    later = (TargetFile(path="new.py"), TargetFile(path="b.py", role="delete"))
    assert (
        part_plan_faults(
            steps_plan(
                step_of_plan_validation("s2", "s1", files=later), step_of_plan_validation("s1", files=files)
            ),
            paths=EXISTING,
            max_steps=2,
        )
        == ()
    )


@pytest.mark.parametrize(
    ("plan", "fault"),
    [
        (meta(), "at least one part is needed"),
        (meta(part("a"), part("b"), part("c")), "at most 2 parts are allowed, not 3"),
        (meta(part("a"), part("a")), "part id a is used twice"),
        (meta(part("Part One")), "part id 'Part One' must be 1 to 32 of a-z, 0-9, _ and -"),
        (meta(part("a", "z")), "part a needs z, which is not in the plan"),
        (meta(part("a", "b"), part("b", "a")), "these parts need one another: a, b"),
        (meta(part("a", "a")), "these parts need one another: a"),
        (meta(part("a", description=" ")), "part a has no description"),
        (meta(part("a", files=("../x",))), "part a: '../x': the path holds an empty segment, '.' or '..'"),
        (
            meta(part("a", files=("/etc/x",))),
            "part a: '/etc/x': the path must be relative to the repository's root",
        ),
        (
            meta(part("a", files=(".git/config",))),
            "part a: .git/config steers git or cra and is never edited",
        ),
    ],
)
def test_each_fault_of_parts_is_named(plan: MetaPlan, fault: str) -> None:
    assert meta_plan_faults(plan, max_parts=2) == (fault,)


@pytest.mark.parametrize(
    ("plan", "fault"),
    [
        (steps_plan(), "at least one step is needed"),
        (steps_plan(step_of_plan_validation("a", files=())), "step a names no file to change"),
        (
            steps_plan(step_of_plan_validation("a", files=(TargetFile(path="c.py"),))),
            "step a is to modify c.py, which does not exist",
        ),
        (
            steps_plan(step_of_plan_validation("a", files=(TargetFile(path="c.py", role="delete"),))),
            "step a is to delete c.py, which does not exist",
        ),
        (
            steps_plan(step_of_plan_validation("a", files=(TargetFile(path="a.py", role="create"),))),
            "step a creates a.py, which exists; its role must be modify",
        ),
        (
            steps_plan(
                step_of_plan_validation("a", files=(TargetFile(path="a.py"), TargetFile(path="a.py")))
            ),
            "step a names a.py twice",
        ),
        (
            steps_plan(
                step_of_plan_validation("a", files=(TargetFile(path="a.py", role="delete"),)),
                step_of_plan_validation("b", "a"),
            ),
            "step b is to modify a.py, which does not exist",
        ),
        (
            steps_plan(step_of_plan_validation("a", "b"), step_of_plan_validation("b", "a")),
            "these steps need one another: a, b",
        ),
    ],
)
def test_each_fault_of_steps_is_named(plan: PartPlan, fault: str) -> None:
    assert part_plan_faults(plan, paths=EXISTING, max_steps=3) == (fault,)


def test_an_adjustment_may_need_what_is_done_but_not_change_it() -> None:
    def faults(*steps: PlanStep) -> tuple[str, ...]:
        return adjustment_faults(
            PlanAdjustment(revised_steps=steps),
            completed=(step_of_plan_validation("s1"),),
            failed=(step_of_plan_validation("s2"),),
            paths=EXISTING,
            max_steps=2,
        )

    assert faults() == ()
    assert faults(step_of_plan_validation("s3", "s1")) == ()
    assert faults(step_of_plan_validation("s1")) == (
        "step s1 is done and cannot be changed; leave it out or use another id",
    )
    assert faults(step_of_plan_validation("s2")) == ("step s2 failed; leave it out or use another id",)
    assert faults(step_of_plan_validation("s3", "s2")) == ("step s3 needs s2, which failed",)
    assert faults(step_of_plan_validation("s3", "s9")) == ("step s3 needs s9, which is not in the plan",)
    assert faults(
        step_of_plan_validation("a"), step_of_plan_validation("b"), step_of_plan_validation("c")
    ) == ("at most 2 steps are allowed, not 3",)


def test_order_follows_needs_and_then_the_plan() -> None:
    assert in_order({"c": ("a",), "b": (), "a": (), "d": ("gone",)}) == ("b", "a", "c", "d")
    assert in_order({"a": (), "b": ("a",), "c": (), "d": ("c",)}) == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("path", "role", "words"),
    [
        ("link.py", "modify", "is to modify link.py, but link.py is a link"),
        ("link.py", "create", "is to create link.py, but link.py is a link"),
        ("a.py/b.py", "create", "but a.py is a file, so nothing can be inside it"),
        ("pkg", "create", "but pkg is a folder"),
        ("A.py", "create", "letter case"),
    ],
)
def test_a_plan_for_a_path_where_no_file_can_be_has_that_fault(path: str, role: FileRole, words: str) -> None:
    places = Places(("a.py", "pkg/x.py"), {"link.py": "a link"})
    steps = steps_plan(step_of_plan_validation("s1", files=(TargetFile(path=path, role=role),)))
    (fault,) = part_plan_faults(steps, paths=places, max_steps=1)
    assert words in fault
    assert place_faults(steps.steps, places) == [fault]


def test_a_plan_may_free_a_path_before_it_uses_it() -> None:
    places = Places(("a", "pkg/x.py"))
    first = step_of_plan_validation(
        "s1", files=(TargetFile(path="a", role="delete"), TargetFile(path="pkg/x.py", role="delete"))
    )
    then = step_of_plan_validation(
        "s2", "s1", files=(TargetFile(path="a/b.py", role="create"), TargetFile(path="pkg", role="create"))
    )
    assert part_plan_faults(steps_plan(first, then), paths=places, max_steps=2) == ()
    (fault,) = part_plan_faults(
        steps_plan(first, first.model_copy(update={"id": "s3"})), paths=places, max_steps=2
    )[:1]
    assert fault == "step s3 is to delete a, which does not exist"


TREE = ("till/money.py", "till/receipt.py", "tests/test_a.py", "till/v1.py", "web/cart.ts")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("till/mony.py", "till/money.py"),
        ("till/moeny.py", "till/money.py"),
        ("tlil/money.py", "till/money.py"),
        ("Till/Money.py", "till/money.py"),
        ("till/recipt.py", "till/receipt.py"),
        ("repo/till/money.py", "till/money.py"),
        ("money.py", "till/money.py"),
        ("till/money.py", ""),
        ("tests/test_b.py", ""),
        ("till/v2.py", ""),
        ("till/rounding.py", ""),
        ("till/money_rules.py", ""),
        ("tests/test_money.py", ""),
        ("web/cart.js", ""),
        ("../money.py", ""),
    ],
)
def test_a_mistyped_path_is_told_from_a_new_one(written: str, meant: str) -> None:
    assert mistyped(written, TREE) == meant
