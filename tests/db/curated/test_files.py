"""The repository and its files, what tells unread that they are as they were, and the state of the index."""

import sqlite3

from clean_room_agent.db.curated import files
from clean_room_agent.db.curated.files import NOT_PARSED, NewFile, SkippedStamp


def test_there_is_one_repository(index: sqlite3.Connection) -> None:
    files.put_repo(index, path="/other", remote_url="url", indexed_at="later")
    repo = files.get_repo(index)
    assert repo is not None
    assert (repo.id, repo.path, repo.remote_url, repo.indexed_at) == (1, "/other", "url", "later")


def test_files_are_listed_by_path(index: sqlite3.Connection) -> None:
    assert [one.path for one in files.list_files(index)] == ["a.py", "b.py", "web/c.ts"]
    assert [one.path for one in files.list_files(index, language="typescript")] == ["web/c.ts"]
    assert files.list_ids(index) == {"a.py": 1, "b.py": 2, "web/c.ts": 3}
    assert files.count_languages(index) == (("python", 2), ("typescript", 1))
    assert files.next_file_id(index) == 4
    found = files.get_file_by_path(index, "b.py")
    assert found is not None
    assert files.get_file_by_id(index, found.id) == found
    assert files.get_file_by_path(index, "B.py") is None


def test_a_file_that_changed_keeps_its_id_and_path(index: sqlite3.Connection) -> None:
    files.update_file(index, 1, NewFile("ignored", "python", "new", 11, 6, 8, "line 1, column 1"))
    assert tuple(files.list_stamps(index)[0]) == (1, "a.py", 11, 6, 8, "new")
    files.update_stamp(index, 1, 99, 98)
    assert tuple(files.list_stamps(index)[0]) == (1, "a.py", 11, 99, 98, "new")
    files.delete_files(index, [1])
    assert files.get_file_by_id(index, 1) is None


def test_source_that_was_left_out_is_told_and_pictures_are_not(index: sqlite3.Connection) -> None:
    files.put_skipped(index, [SkippedStamp("x.py", 1, 2, 3, "binary"), SkippedStamp("x.png", 1, 2, 3, "")])
    assert files.list_left_out(index) == (("x.py", "binary"),)
    assert [one.path for one in files.list_skipped(index)] == ["x.png", "x.py"]
    files.forget_skipped(index, ["x.png"])
    assert [one.path for one in files.list_skipped(index)] == ["x.py"]


def test_files_that_the_parser_gave_up_on_are_told(index: sqlite3.Connection) -> None:
    files.update_file(index, 2, NewFile("b.py", "python", "h", 1, 1, 1, f"{NOT_PARSED}no code"))
    files.update_file(index, 1, NewFile("a.py", "python", "h", 1, 1, 1, "line 1, column 1"))
    assert files.list_unparsed(index) == (("b.py", "no code"),)


def test_a_value_is_kept_until_another_is(index: sqlite3.Connection) -> None:
    assert files.get_index_state(index, "key") is None
    files.put_index_state(index, "key", "one")
    files.put_index_state(index, "key", "two")
    assert files.get_index_state(index, "key") == "two"


def test_a_change_is_seen(index: sqlite3.Connection) -> None:
    before = files.seen_changes(index)
    assert files.seen_changes(index) == before
    files.put_index_state(index, "key", "one")
    assert files.seen_changes(index) != before
