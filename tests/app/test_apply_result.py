"""A commit is brought into the working tree once, and taken out again."""

from pathlib import Path
from typing import Any, cast

import pytest
from testing.repositories import commit_change, make_repository, write
from tests.db.raw.samples import NOW, TASK

from clean_room_agent.app.apply_result import bring
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
    assert bring(repo, record, TASK, base=repo.head, commit=result, undo=True) == ("a.py", "new.py")
    assert (repo.top / "a.py").read_text() == "1\n"
    assert not (repo.top / "new.py").exists()
    assert events.kept == [("applied", "a.py\nnew.py"), ("applied", ""), ("taken_back", "a.py\nnew.py")]


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
