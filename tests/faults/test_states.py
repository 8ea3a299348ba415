"""The scoreboard's states of repositories, a few of them; all of them are tried by `python -m benchmarks.faults states`."""

from pathlib import Path

import pytest
from testing.faults.states import COMMANDS, differences, marks, survey_states
from testing.repositories import git, make_repository, write
from testing.states.every import STATES
from testing.states.hostile import canary, canary_program, plant_programs
from testing.states.place import Place

TRIED = ("init", "index", "solve, Ctrl-C", "solve", "apply, the file changed", "apply", "discard")
FIT = (
    "inherited variables",
    "alternates",
)
REFUSED = (
    *(
        "bare",
        "without a commit",
        "mid merge",
        "mid rebase",
        "mid cherry picks",
        "mid am",
        "unresolved stash",
        "no repository",
    ),
    *("broken objects", "folder whose name is not utf8", "clean room in an archive", "refs that are a link"),
)


@pytest.mark.parametrize("name", FIT)
def test_commands_work_and_change_nothing_of_the_users(name: str, tmp_path: Path) -> None:
    commands = [command for command in COMMANDS if command.name in TRIED]
    survey = survey_states(tmp_path, (name,), commands)
    assert survey.findings == ()
    assert survey.tried == len(TRIED)


@pytest.mark.parametrize("name", REFUSED)
def test_commands_are_refused_with_the_remedy_and_change_nothing(name: str, tmp_path: Path) -> None:
    commands = [command for command in COMMANDS if command.name in {"init", "solve"}]
    assert survey_states(tmp_path, (name,), commands).findings == ()


def test_every_state_can_be_made_or_is_said_to_be_missing(tmp_path: Path) -> None:
    assert len(STATES) >= 60
    for number, name in enumerate(("clean", "sparse cone", "mid bisect", "reftable")):
        folder = tmp_path / str(number)
        folder.mkdir()
        place = STATES[name](folder)
        assert place is None or place.top.is_dir()


def test_the_comparison_sees_what_it_is_for(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "till", {"a.py": "a\n", "b.py": "b\n"})
    before = marks(tmp_path, top)
    write(top, {".clean_room/raw.sqlite": "x"})
    git(top, "update-ref", "refs/cra/t1/base", "HEAD")
    git(top, "hash-object", "-w", "--stdin", feed=b"new")
    assert differences(before, marks(tmp_path, top), frozenset()) == ()
    (top / "a.py").chmod(0o755)
    git(top, "tag", "v1")
    git(top, "config", "x.y", "z")
    write(top, {"new.py": ""})
    found = differences(before, marks(tmp_path, top), frozenset())
    assert found == ("till/.git/config", "till/.git/refs/tags/v1", "till/a.py", "till/new.py")
    assert "till/a.py" not in differences(before, marks(tmp_path, top), frozenset({"till/a.py"}))


def test_the_planted_programs_are_run_by_git_itself(tmp_path: Path) -> None:
    place = Place(top=make_repository(tmp_path / "till", {"a.py": "a\n"}))
    plant_programs(tmp_path, place)
    assert canary(tmp_path) == ()
    canary_program(tmp_path, tmp_path / "hook")
    git(place.top, "-c", "alias.look=!git status; git diff HEAD~0 || true", "look")
    assert any("canary program" in line for line in canary(tmp_path))
