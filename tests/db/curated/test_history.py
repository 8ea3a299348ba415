"""Commits and what they touched: pasts that move from path to path, and pairs that follow."""

import sqlite3

import pytest

from clean_room_agent.db.curated import files, history
from clean_room_agent.db.curated.history import CommitTuple, TouchedFiles


def commit(number: int, changed: int = 2) -> CommitTuple:
    return (number, 1, f"c{number}", "Ann", f"Message {number}", 86_400 * number, changed)


@pytest.fixture
def past(index: sqlite3.Connection) -> sqlite3.Connection:
    """Commits 10, 20 and 30; a.py is in all of them, b.py in the last two."""
    history.insert_commits(index, map(commit, (10, 20, 30)))
    history.insert_file_commits(index, [(1, 10), (1, 20), (1, 30), (2, 20), (2, 30)])
    history.add_pairs(index, [(1, 2, 2, 30)])
    return index


def pairs(conn: sqlite3.Connection) -> list[tuple[object, ...]]:
    query = "SELECT file_a_id, file_b_id, count, last_commit_hash FROM co_changes ORDER BY 1, 2"
    return [tuple(row) for row in conn.execute(query)]


def test_commits_are_found_by_age_and_hash(past: sqlite3.Connection) -> None:
    assert history.list_ids(past, ["c20", "unknown"]) == {"c20": 20}
    assert history.list_hashes(past, [30, 10]) == {"c30": 30, "c10": 10}
    assert history.oldest_ids(past, 2) == [10, 20]
    assert [history.id_at(past, rank) for rank in (0, 2, 3)] == [30, 10, None]
    assert [history.id_before(past, newer) for newer in (30, 10)] == [20, None]
    assert history.list_touched(past, 10, 20) == (TouchedFiles(10, 2, (1,)), TouchedFiles(20, 2, (1, 2)))
    assert [one.hash for one in history.list_commits_of_file(past, 1, 2)] == ["c30", "c20"]
    assert history.newest_commit_time(past) == "1970-01-31T00:00:00+00:00"
    assert history.read_message(past, 10) == ("c10", "Message 10")


def test_a_past_can_wait_for_a_file_under_the_paths_name(past: sqlite3.Connection) -> None:
    taken = history.take_past(past, "a.py", 1, oldest=20, newest=30)
    history.put_past(past, "gone.py", None, taken)
    assert taken == [20, 30]
    assert history.list_lost_paths(past) == ("gone.py",)
    history.delete_commits(past, [30])
    assert history.take_past(past, "gone.py", None, oldest=0, newest=99) == [20]
    assert history.take_past(past, "gone.py", None, oldest=0, newest=99) == []
    history.drop_dead_lost(past)
    assert history.list_lost_paths(past) == ()


def test_a_file_that_leaves_leaves_its_past(past: sqlite3.Connection) -> None:
    files.delete_files(past, [2])
    assert history.list_lost_paths(past) == ("b.py",)
    assert history.take_past(past, "b.py", None, oldest=0, newest=99) == [20, 30]
    history.forget_lost_path(past, "b.py")
    assert history.list_lost_paths(past) == ()


def test_pairs_are_counted_up_and_down(past: sqlite3.Connection) -> None:
    history.add_pairs(past, [(1, 2, 1, 10), (1, 3, 1, 20)])
    assert pairs(past) == [(1, 2, 3, "c30"), (1, 3, 1, "c20")]
    history.remove_pairs(past, [(1, 2, 1), (1, 3, 1)])
    assert pairs(past) == [(1, 2, 2, "c30")]
    assert [(one.file.path, one.count) for one in history.list_co_changes(past, 2, 1, 9)] == [("a.py", 2)]


def test_pairs_follow_commits_that_go(past: sqlite3.Connection) -> None:
    history.delete_commits(past, [30])
    history.renew_pairs(past, 2, max_files=5)
    assert pairs(past) == [(1, 2, 1, "c20")]
    history.renew_pairs(past, 2, max_files=1)
    assert pairs(past) == []


def test_renames_keep_names_that_are_not_utf8(past: sqlite3.Connection) -> None:
    history.insert_renames(past, [(20, "\udcff.py", "b.py"), (10, "x", "y")])
    assert history.list_renames(past, 20) == {20: [("\udcff.py", "b.py")]}


def test_terms_are_those_of_the_newest_commits(past: sqlite3.Connection) -> None:
    history.put_terms(past, [(10, '{"one":1}'), (30, '{"three":1}')])
    history.drop_terms(past, 20)
    assert [(one.id, one.file_ids) for one in history.list_said(past)] == [(30, [1, 2])]
