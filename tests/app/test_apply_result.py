"""A commit is brought into the working tree once, and taken out again."""

from pathlib import Path
from typing import Any, cast

import pytest
from testing.repositories import commit_change, git, make_repository, write
from tests.db.raw.samples import NOW, TASK

from clean_room_agent.app.apply_result import bring, take_out
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import EventRow, list_events
from clean_room_agent.errors import RepositoryError
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.workspace import Workspace


class Events:
    """A record that keeps events."""

    def __init__(self) -> None:
        self.rows: list[EventRow] = []

    @property
    def kept(self) -> list[tuple[str, str]]:
        """Their kinds and details."""
        return [(str(row.kind), row.detail) for row in self.rows]

    def now(self) -> str:
        return NOW

    def write(self, action: Any, argument: Any) -> Any:
        return self.rows if action is list_events else self.rows.append(argument)


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    repo = open_repository(make_repository(tmp_path / "repo", {"a.py": "1\n", "b.py": "b\n"}))
    Workspace(repo=repo.top).create()
    return repo


def test_a_result_is_applied_once_and_undone(repo: Repository) -> None:
    events = Events()
    record = cast("Record", events)
    result = commit_change(repo, {"a.py": b"2\n", "new.py": b"n\n"})
    assert bring(repo, record, TASK, base=repo.head, commit=result) == ("a.py", "new.py")
    assert (repo.top / "a.py").read_text() == "2\n"
    assert bring(repo, record, TASK, base=repo.head, commit=result) == ()
    assert take_out(repo, record, TASK, base=repo.head, commit=result) == ("a.py", "new.py")
    assert (repo.top / "a.py").read_text() == "1\n"
    assert not (repo.top / "new.py").exists()
    assert events.kept == [
        ("applied", "a.py\nnew.py"),
        ("applied", ""),
        ("taken_back", "a.py\nnew.py"),
    ]


def test_a_file_that_has_changed_since_is_not_written_over(repo: Repository) -> None:
    result = commit_change(repo, {"a.py": b"2\n", "b.py": b"c\n"})
    write(repo.top, {"b.py": "mine\n"})
    with pytest.raises(RepositoryError):
        bring(repo, cast("Record", Events()), TASK, base=repo.head, commit=result)
    assert (repo.top / "a.py").read_text() == "1\n"
    assert (repo.top / "b.py").read_text() == "mine\n"


def test_line_ends_do_not_make_a_difference(repo: Repository) -> None:
    result = commit_change(repo, {"a.py": b"2\n"})
    (repo.top / "a.py").write_bytes(b"2\r\n")
    assert bring(repo, cast("Record", Events()), TASK, base=repo.head, commit=result) == ()


def test_what_was_removed_comes_back_with_its_mode(repo: Repository) -> None:
    write(repo.top, {"folder/in.py": "in\n"})
    git(repo.top, "add", "-A")
    git(repo.top, "commit", "-q", "-m", "In")
    repo = open_repository(repo.top)
    record = cast("Record", Events())
    (repo.top / "b.py").chmod(0o600)
    (repo.top / "folder").chmod(0o700)
    result = commit_change(repo, {"b.py": None, "folder/in.py": None})
    bring(repo, record, TASK, base=repo.head, commit=result)
    assert not (repo.top / "folder").exists()
    take_out(repo, record, TASK, base=repo.head, commit=result)
    modes = [(repo.top / path).stat().st_mode & 0o777 for path in ("b.py", "folder", "folder/in.py")]
    assert modes == [0o600, 0o700, 0o644]


def test_what_a_link_replaced_comes_back_with_its_mode(repo: Repository) -> None:
    record = cast("Record", Events())
    (repo.top / "b.py").unlink()
    (repo.top / "b.py").symlink_to("a.py")
    git(repo.top, "commit", "-q", "-a", "-m", "Link")
    result = git(repo.top, "rev-parse", "HEAD").strip()
    git(repo.top, "reset", "-q", "--hard", repo.head)
    (repo.top / "b.py").chmod(0o600)
    bring(repo, record, TASK, base=repo.head, commit=result)
    assert (repo.top / "b.py").is_symlink()
    take_out(repo, record, TASK, base=repo.head, commit=result)
    assert (repo.top / "b.py").stat().st_mode & 0o777 == 0o600
