from pathlib import Path

import pytest
from tests.fakes.repositories import commit, git, make_repository, write
from tests.indexer.dump import dump_of, index

from clean_room_agent.indexer.config import IndexConfig
from clean_room_agent.workspace import Workspace


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = make_repository(tmp_path / "repo", {"a.py": "x = 1\n" * 9, "b.py": "y = 1\n", "c.py": "z = 1\n"})
    commit(top, {"a.py": "x = 2\n" * 9, "b.py": "y = 2\n"}, "Polish the frobnicator")
    commit(top, {"a.py": "x = 3\n" * 9}, "Third")
    return top


def assert_same_as_fresh(top: Path, config: IndexConfig | None = None) -> None:
    index(top, config=config)
    updated = dump_of(top)
    Workspace(repo=top).curated.unlink()
    index(top, config=config)
    assert updated == dump_of(top)


def messages(top: Path, path: str) -> list[object]:
    rows = dump_of(top)
    of_file = {row[1] for row in rows["file_commits"] if row[0] == path}
    return [row[2] for row in rows["commits"] if row[0] in of_file]


def test_commits_stand_oldest_first_with_the_files_of_today(top: Path) -> None:
    index(top)
    assert messages(top, "a.py") == ["Begin", "Polish the frobnicator", "Third"]
    assert messages(top, "b.py") == ["Begin", "Polish the frobnicator"]
    assert messages(top, "c.py") == ["Begin"]


def test_pairs_are_counted_with_their_newest_commit(top: Path) -> None:
    index(top)
    polish = git(top, "rev-parse", "HEAD~1")
    begin = git(top, "rev-parse", "HEAD~2")
    assert dump_of(top)["co_changes"] == [
        ("a.py", "b.py", 2, polish),
        ("a.py", "c.py", 1, begin),
        ("b.py", "c.py", 1, begin),
    ]


def test_commits_of_many_files_are_history_but_no_pairs(top: Path) -> None:
    index(top, config=IndexConfig(pair_bound=2))
    assert [row[:3] for row in dump_of(top)["co_changes"]] == [("a.py", "b.py", 1)]
    assert "Begin" in messages(top, "c.py")


def test_messages_are_searched_as_a_field_of_the_files_they_touched(top: Path) -> None:
    index(top)
    found = {row[1]: row[7] for row in dump_of(top)["postings"] if row[0] == "frobnic"}
    assert found == {"a.py": pytest.approx(2**-0.5), "b.py": pytest.approx(2**-0.5)}


def test_a_past_follows_its_file_through_renames(top: Path) -> None:
    commit(top, {"a.py": None, "moved/a2.py": "x = 3\n" * 9}, "Move")
    commit(top, {"a.py": "another = 1\n"}, "Anew")
    index(top)
    assert messages(top, "moved/a2.py") == ["Begin", "Polish the frobnicator", "Third", "Move"]
    assert messages(top, "a.py") == ["Anew"]


def test_new_commits_are_added_to_what_is_known(top: Path) -> None:
    index(top)
    commit(top, {"b.py": "y = 3\n", "c.py": "z = 3\n"}, "Fourth")
    commit(top, {"d.py": "w = 1\n", "a.py": "x = 4\n" * 9}, "Fifth")
    assert_same_as_fresh(top)


def test_renames_among_new_commits_give_old_ones_a_new_file(top: Path) -> None:
    index(top)
    commit(top, {"a.py": None, "renamed.py": "x = 3\n" * 9}, "Move")
    assert_same_as_fresh(top)
    assert "Third" in messages(top, "renamed.py")


def test_merges_among_new_commits_put_old_ones_in_their_place(top: Path) -> None:
    git(top, "branch", "side", "HEAD~1")
    index(top)
    git(top, "checkout", "-q", "side")
    commit(top, {"c.py": "z = 9\n"}, "Aside")
    git(top, "checkout", "-q", "main")
    commit(top, {"b.py": "y = 9\n"}, "Main")
    git(top, "merge", "-q", "--no-ff", "-m", "Merge", "side")
    assert_same_as_fresh(top)


def test_a_history_that_was_rewritten_is_read_anew(top: Path) -> None:
    index(top)
    git(top, "reset", "-q", "--hard", "HEAD~1")
    assert_same_as_fresh(top)
    commit(top, {"c.py": "z = 5\n"}, "Other third")
    assert_same_as_fresh(top)
    git(top, "checkout", "-q", "--orphan", "new")
    commit(top, {}, "All anew")
    assert_same_as_fresh(top)


def test_a_file_that_comes_back_has_its_past_again(top: Path) -> None:
    index(top)
    (top / "b.py").unlink()
    index(top)
    assert messages(top, "b.py") == []
    git(top, "checkout", "-q", "b.py")
    assert_same_as_fresh(top)
    assert messages(top, "b.py") == ["Begin", "Polish the frobnicator"]


def test_a_file_that_was_deleted_before_the_first_index_and_is_written_anew_has_its_past(top: Path) -> None:
    commit(top, {"b.py": None}, "Delete")
    index(top)
    write(top, {"b.py": "new = 1\n"})
    assert_same_as_fresh(top)
    assert "Delete" in messages(top, "b.py")


@pytest.mark.parametrize("bound", [1, 3])
def test_the_oldest_commits_make_room(top: Path, bound: int) -> None:
    config = IndexConfig(history=bound)
    index(top, config=config)
    for number in range(2):
        commit(top, {"b.py": f"y = {number}\n", "c.py": f"z = {number}\n"}, f"More {number}")
        assert_same_as_fresh(top, config)
        commit(top, {"a.py": f"x = {number}\n"}, f"Alone {number}")
    summary = index(top, config=config)
    assert summary.commits == bound
    assert_same_as_fresh(top, config)
