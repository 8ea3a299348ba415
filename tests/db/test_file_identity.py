from pathlib import Path

import pytest

from clean_room_agent.db.file_identity import OpenFiles
from clean_room_agent.errors import RecordError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "raw.sqlite"
    path.write_bytes(b"x" * 100)
    return path


def fault(files: OpenFiles) -> str:
    try:
        files.require()
    except RecordError as error:
        return str(error)
    return ""


def test_a_file_that_stands_and_grows_is_the_one_that_was_opened(path: Path) -> None:
    files = OpenFiles(path)
    path.write_bytes(b"x" * 200)
    assert fault(files) == ""


def test_a_file_that_was_removed_is_missed(path: Path) -> None:
    files = OpenFiles(path)
    path.unlink()
    with pytest.raises(RecordError, match="not there any more") as caught:
        files.require()
    assert "start again" in caught.value.hint


def test_another_file_in_its_place_is_noticed(path: Path) -> None:
    files = OpenFiles(path)
    other = path.with_name("other")
    other.write_bytes(b"x" * 100)
    other.rename(path)
    with pytest.raises(RecordError, match="not there any more"):
        files.require()


def test_a_file_that_lost_content_is_noticed(path: Path) -> None:
    files = OpenFiles(path)
    with path.open("r+b") as file:
        file.truncate(10)
    with pytest.raises(RecordError, match="lost its content"):
        files.require()


def test_a_journal_that_comes_later_is_watched_from_then_on_and_may_become_shorter(path: Path) -> None:
    files, journal = OpenFiles(path), path.with_name("raw.sqlite-wal")
    journal.write_bytes(b"x" * 50)
    assert fault(files) == ""
    journal.write_bytes(b"")
    assert fault(files) == ""
    journal.unlink()
    with pytest.raises(RecordError, match="wal is not there any more"):
        files.require()
