"""The repository, its files and the imports between them, what tells unread that they are as they were, and the state of the index."""

import sqlite3

from clean_room_agent.db.curated import files, symbols
from clean_room_agent.db.curated.files import NewFileRow, SkippedStamp
from clean_room_agent.db.curated.names import Resolution, insert_resolutions
from clean_room_agent.db.curated.symbols import first_symbol_id

FIRST = first_symbol_id(2)


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
    files.update_file(index, 1, NewFileRow("ignored", "python", "new", 11, 6, 8, "line 1, column 1"))
    assert files.list_stamps(index)["a.py"] == (11, 6, 8)
    files.update_stamp(index, 1, 99, 98)
    assert files.list_stamps(index)["a.py"] == (11, 99, 98)
    files.delete_files(index, [1])
    assert files.get_file_by_id(index, 1) is None


def test_source_that_was_left_out_is_told_and_pictures_are_not(index: sqlite3.Connection) -> None:
    files.put_skipped(index, [SkippedStamp("x.py", 1, 2, 3, "binary"), SkippedStamp("x.png", 1, 2, 3, "")])
    assert files.list_left_out(index) == (("x.py", "binary"),)
    assert files.list_stamps(index)["x.png"] == (1, 2, 3)
    files.forget_skipped(index, ["x.png"])
    assert {"x.py", "x.png"} & files.list_stamps(index).keys() == {"x.py"}


def test_a_change_is_seen(index: sqlite3.Connection) -> None:
    before = files.seen_changes(index)
    assert files.seen_changes(index) == before
    files.put_index_state(index, "key", "one")
    assert files.seen_changes(index) != before


def edges(conn: sqlite3.Connection, file_id: int) -> list[tuple[int, int, str]]:
    found = files.list_edges(conn, file_id)
    return [(one.source_file_id, one.target_file_id, one.kind) for one in found]


def test_imports_are_seen_from_both_ends(index: sqlite3.Connection) -> None:
    insert_resolutions(
        index, [Resolution(dependencies=[(1, 2, "import"), (3, 2, "type_ref"), (1, 3, "import")])]
    )
    assert [(one.file.path, one.kind) for one in files.list_imports(index, 1)] == [
        ("b.py", "import"),
        ("web/c.ts", "import"),
    ]
    assert [(one.file.path, one.kind) for one in files.list_importers(index, 2)] == [
        ("a.py", "import"),
        ("web/c.ts", "type_ref"),
    ]
    assert edges(index, 3) == [(1, 3, "import"), (3, 2, "type_ref")]


def test_what_a_module_passes_on_is_listed_by_name(index: sqlite3.Connection) -> None:
    symbols.insert_symbols(index, [(FIRST, 2, 0, "f", "f", "function", 1, 2, "def f()", None)])
    insert_resolutions(index, [Resolution(reexports=[(3, "f", 2, FIRST), (3, "whole", 2, None)])])
    found = files.list_reexports(index, 3)
    assert [(one.name, one.file.path, one.symbol and one.symbol.name) for one in found] == [
        ("f", "b.py", "f"),
        ("whole", "b.py", None),
    ]
