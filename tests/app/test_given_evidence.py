from pathlib import Path

import pytest
from testing.repositories import make_repository

from clean_room_agent.app.given_evidence import checked_evidence, together
from clean_room_agent.artifacts.goals import NOTHING_GIVEN, GivenEvidence
from clean_room_agent.errors import UsageError
from clean_room_agent.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    files = {"till/money.py": "", "till/deep/x.py": "", "money.py": "", "README.md": ""}
    top = make_repository(tmp_path / "project", files)
    (top / "link.py").symlink_to("money.py")
    (top / "fresh.py").write_text("")
    return Workspace(repo=top)


def files_of(workspace: Workspace, *files: str, folder: str = ".") -> tuple[str, ...]:
    given = GivenEvidence(files=files)
    return checked_evidence(workspace, given, folder=workspace.repo / folder).files


@pytest.mark.parametrize(
    ("file", "folder", "path"),
    [
        ("till/money.py", ".", "till/money.py"),
        ("./till/../till/money.py", ".", "till/money.py"),
        ("x.py", "till/deep", "till/deep/x.py"),
        ("../money.py", "till/deep", "till/money.py"),
        ("money.py", "till", "money.py"),
        ("fresh.py", ".", "fresh.py"),
        ("till/money.py", "..", "till/money.py"),
    ],
)
def test_a_file_is_a_path_of_the_repository(workspace: Workspace, file: str, folder: str, path: str) -> None:
    assert files_of(workspace, file, folder=folder) == (path,)


def test_an_absolute_path_is_one_of_the_repository_too(workspace: Workspace, tmp_path: Path) -> None:
    assert files_of(workspace, str(workspace.repo / "till/money.py")) == ("till/money.py",)
    (tmp_path / "other").symlink_to(workspace.repo)
    assert files_of(workspace, str(tmp_path / "other" / "money.py")) == ("money.py",)


@pytest.mark.parametrize(
    ("file", "said", "hint"),
    [
        ("till/mony.py", "--file till/mony.py: there is no such file", "did you mean till/money.py?"),
        ("deep/x.py", "--file deep/x.py: there is no such file", "did you mean till/deep/x.py?"),
        ("till", "--file till: till is a folder", ""),
        ("link.py", "--file link.py: link.py is a link", ""),
        ("../outside.py", "--file ../outside.py: there is no such file", ""),
        ("/etc/passwd", "--file /etc/passwd: there is no such file", ""),
        (".git/config", "--file .git/config: there is no such file", ""),
        ("README.md/x", "README.md is a file, so nothing can be inside it", ""),
        ("Money.py", "only letter case or Unicode form tells it from money.py", ""),
        (" ", "--file ' ' says nothing", ""),
    ],
)
def test_what_cannot_be_changed_is_refused(workspace: Workspace, file: str, said: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        files_of(workspace, file)
    assert said in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "given",
    [
        GivenEvidence(checks=("",)),
        GivenEvidence(checks=("sh:",)),
        GivenEvidence(checks=("sh:  ",)),
        GivenEvidence(tests=(" ",)),
    ],
)
def test_a_check_that_says_nothing_is_refused(workspace: Workspace, given: GivenEvidence) -> None:
    with pytest.raises(UsageError, match="says nothing"):
        checked_evidence(workspace, given)


def test_everything_is_kept_once(workspace: Workspace) -> None:
    given = GivenEvidence(
        checks=("assert a", "assert a ", "sh: b"),
        tests=("t.py::a", "t.py::a"),
        files=("money.py", "./money.py"),
    )
    checked = checked_evidence(workspace, given, folder=workspace.repo)
    assert checked == GivenEvidence(checks=("assert a", "sh: b"), tests=("t.py::a",), files=("money.py",))
    assert together(checked, checked) == checked
    assert together(NOTHING_GIVEN, checked) == together(checked, NOTHING_GIVEN) == checked
    assert checked_evidence(workspace, NOTHING_GIVEN) == NOTHING_GIVEN
