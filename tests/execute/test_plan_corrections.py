import pytest

from clean_room_agent.artifacts.plans import FileRole, PlanStep, TargetFile
from clean_room_agent.execute.plan_corrections import corrected_steps, ending_with, only_match

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


def test_folders_that_contradict_are_no_ending() -> None:
    assert ending_with("src/money.py", PATHS) == ""
    assert ending_with("money.py", PATHS) == "till/money.py"


def step(name: str, *files: tuple[str, FileRole]) -> PlanStep:
    targets = tuple(TargetFile(path=path, role=role) for path, role in files)
    return PlanStep(id=name, description="Do it.", target_files=targets)


def written(*steps: PlanStep) -> tuple[list[list[tuple[str, FileRole]]], tuple[str, ...]]:
    right, notes = corrected_steps(steps, PATHS)
    return [[(file.path, file.role) for file in each.target_files] for each in right], notes


def test_a_file_named_wrongly_twice_is_named_once() -> None:
    files, notes = written(step("s1", ("money.py", "modify"), ("till/money.py", "modify")))
    assert files == [[("till/money.py", "modify")]]
    assert notes == ("money.py does not exist and can only be till/money.py",)


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
