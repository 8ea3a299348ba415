import pytest
from testing.packages import package, shown_file, shown_symbol

from clean_room_agent.artifacts.edits import EditCode, PatchEdit
from clean_room_agent.artifacts.plans import TargetFile
from clean_room_agent.execute.edits.rules import EditRules, only_symbols_shown, refuse_content, refuse_path

TEXT = "def f():\n    return 1\n"
SHOWN = package(shown_file("shown.py", TEXT), shown_symbol("part.py", TEXT, "f", 1, 2))
RULES = EditRules(
    targets=(TargetFile(path="a.py"), TargetFile(path="old.py", role="delete")),
    planned=("tests/test_b.py",),
    protected=("vendor/**",),
    scripts=("run.sh",),
    uneditable={"logo.py": "it is a link"},
)


def edit(path: str, kind: str = "edit") -> PatchEdit:
    return PatchEdit(kind=kind, file_path=path)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (edit("a.py"), None, ""),
        (edit("shown.py"), None, ""),
        (edit("old.py", "delete"), None, ""),
        (edit("other.py"), EditCode.WRONG_FILE, "neither a target of this step nor shown; edit only: a.py"),
        (edit("../up.py"), EditCode.WRONG_FILE, ""),
        (edit(".git/config"), EditCode.PROTECTED, "steers git or cra"),
        (edit("vendor/x.py"), EditCode.PROTECTED, "[edit].protected"),
        (edit("logo.py"), EditCode.PROTECTED, "it is a link"),
        (edit("tests/test_a.py"), EditCode.PROTECTED, "decides whether tests pass"),
        (edit("run.sh"), EditCode.PROTECTED, "decides whether tests pass"),
        (edit("tests/test_b.py"), EditCode.WRONG_FILE, "neither a target"),
        (edit("a.py", "delete"), EditCode.PROTECTED, "is to be deleted"),
        (edit("shown.py", "create"), EditCode.WRONG_FILE, "not a target"),
    ],
)
def test_an_edit_stays_within_its_step(change: PatchEdit, code: EditCode | None, said: str) -> None:
    refusal = refuse_path(change, RULES, SHOWN, exists=True)
    assert (None if refusal is None else refusal.code) == code
    assert refusal is None or said in refusal.detail


@pytest.mark.parametrize(
    ("path", "before", "after", "refused"),
    [
        ("pyproject.toml", "[tool.x]\na = 1\n", "[tool.x]\na = 2\n", True),
        ("pyproject.toml", "[project]\nname = 'a'\n", "[project]\nname = 'b'\n", False),
        ("pyproject.toml", "[project]\n", "[project\n", True),
        ("web/package.json", '{"scripts": {}}', '{"scripts": {"test": "true"}}', True),
        ("web/package.json", '{"version": "1"}', '{"version": "2"}', False),
        ("a.toml", "x", "y", False),
    ],
)
def test_how_tools_and_tests_run_is_changed_by_plan_alone(
    path: str, before: str, after: str, *, refused: bool
) -> None:
    assert (refuse_content(path, before, after, RULES) is not None) is refused
    planned = EditRules(targets=(TargetFile(path=path),))
    assert refuse_content(path, before, after, planned) is None


def test_of_a_file_shown_in_part_only_what_is_shown_may_change() -> None:
    assert only_symbols_shown("part.py", RULES, SHOWN)
    assert not only_symbols_shown("shown.py", RULES, SHOWN)
    assert not only_symbols_shown("a.py", RULES, SHOWN)
