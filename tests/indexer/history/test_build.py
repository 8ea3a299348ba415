import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.repositories import FIRST_DATE, commit, git, init_repository, make_repository, write
from tests.indexer.history.history_index import HistoryIndex

from clean_room_agent.indexer.history.build import begin_history, read_state
from clean_room_agent.indexer.index_config import IndexConfig

TEXT = "x = {}\n" * 9


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = make_repository(
        tmp_path / "repo", {"a.py": TEXT.format(*"1" * 9), "b.py": "y = 1\n", "c.py": "z = 1\n"}
    )
    commit(top, {"a.py": TEXT.format(*"2" * 9), "b.py": "y = 2\n"}, "Polish the frobnicator")
    commit(top, {"a.py": TEXT.format(*"3" * 9)}, "Third")
    return top


@pytest.fixture
def index(top: Path, tmp_path: Path) -> Iterator[HistoryIndex]:
    made = HistoryIndex(top, tmp_path / "index.sqlite")
    with contextlib.closing(made.conn):
        yield made


def test_commits_stand_oldest_first_with_the_files_of_today(index: HistoryIndex) -> None:
    assert index.refresh() == 3
    assert index.commits_of("a.py") == ["Begin", "Polish the frobnicator", "Third"]
    assert index.commits_of("b.py") == ["Begin", "Polish the frobnicator"]
    assert index.commits_of("c.py") == ["Begin"]
    first = index.rows()["commits"][0]
    assert first[1:] == ("Ada Example", "Begin", "2023-11-14T22:13:20+00:00", 3)


def test_pairs_are_counted_with_their_newest_commit(index: HistoryIndex) -> None:
    index.refresh()
    polish = git(index.top, "rev-parse", "HEAD~1")
    begin = git(index.top, "rev-parse", "HEAD~2")
    assert index.rows()["pairs"] == [
        ("a.py", "b.py", 2, polish),
        ("a.py", "c.py", 1, begin),
        ("b.py", "c.py", 1, begin),
    ]


def test_commits_of_many_files_are_history_but_no_pairs(index: HistoryIndex) -> None:
    index.config = IndexConfig(pair_bound=2)
    index.refresh()
    assert [row[:3] for row in index.rows()["pairs"]] == [("a.py", "b.py", 1)]
    assert "Begin" in index.commits_of("c.py")


def test_messages_are_kept_as_terms_unless_they_speak_of_many_files(index: HistoryIndex) -> None:
    many = commit(index.top, {f"many{number}": "x\n" for number in range(31)}, "Many")
    index.refresh()
    found = {name: json.loads(str(terms)) for name, terms in index.rows()["terms"]}
    assert found[git(index.top, "rev-parse", "HEAD~2")] == {"polish": 1, "frobnic": 1}
    assert many not in found
    assert len(found) == 3


def test_a_past_follows_its_file_through_renames(index: HistoryIndex) -> None:
    text = (index.top / "a.py").read_text()
    commit(index.top, {"a.py": None, "moved/a2.py": text}, "Move")
    commit(index.top, {"a.py": "another = 1\n"}, "Anew")
    index.refresh()
    assert index.commits_of("moved/a2.py") == ["Begin", "Polish the frobnicator", "Third", "Move"]
    assert index.commits_of("a.py") == ["Anew"]


def test_git_is_not_asked_where_nothing_is_new(index: HistoryIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    index.refresh()
    head = git(index.top, "rev-parse", "HEAD")
    before = index.rows()
    monkeypatch.setenv("PATH", "")
    pending = begin_history(index.top, index.config, head=head, state=read_state(index.conn))
    pending.collect()
    ids = {row[0]: row[1] for row in index.conn.execute("SELECT path, id FROM files")}
    assert pending.write(index.conn, repo_id=7, ids=ids) == 0
    assert index.rows() == before


def test_new_commits_are_added_to_what_is_known(index: HistoryIndex) -> None:
    index.refresh()
    commit(index.top, {"b.py": "y = 3\n", "c.py": "z = 3\n"}, "Fourth")
    commit(index.top, {"d.py": "w = 1\n", "a.py": TEXT.format(*"4" * 9)}, "Fifth")
    assert index.refresh() == 2
    index.assert_as_fresh()


def test_renames_among_new_commits_give_old_ones_a_new_file(index: HistoryIndex) -> None:
    index.refresh()
    commit(index.top, {"a.py": None, "renamed.py": (index.top / "a.py").read_text()}, "Move")
    assert index.refresh() == 1
    index.assert_as_fresh()
    assert index.commits_of("renamed.py") == ["Begin", "Polish the frobnicator", "Third", "Move"]


def test_merges_among_new_commits_put_old_ones_in_their_place(index: HistoryIndex) -> None:
    git(index.top, "branch", "side", "HEAD~1")
    index.refresh()
    git(index.top, "checkout", "-q", "side")
    commit(index.top, {"c.py": "z = 9\n"}, "Aside")
    git(index.top, "checkout", "-q", "main")
    commit(index.top, {"b.py": "y = 9\n"}, "Main")
    git(index.top, "merge", "-q", "--no-ff", "-m", "Merge", "side")
    assert index.refresh() == 3
    index.assert_as_fresh()


def test_commits_that_went_are_taken_back(index: HistoryIndex) -> None:
    index.refresh()
    git(index.top, "reset", "-q", "--hard", "HEAD~1")
    index.refresh()
    index.assert_as_fresh()
    commit(index.top, {"c.py": "z = 5\n"}, "Other third")
    index.refresh()
    index.assert_as_fresh()
    git(index.top, "checkout", "-q", "--orphan", "new")
    commit(index.top, {}, "All anew")
    index.refresh()
    index.assert_as_fresh()


def test_a_rename_that_went_gives_both_pasts_back(index: HistoryIndex) -> None:
    commit(index.top, {"b.py": None}, "Delete")
    commit(index.top, {"a.py": None, "b.py": (index.top / "a.py").read_text()}, "Move")
    index.refresh()
    assert index.commits_of("b.py") == ["Begin", "Polish the frobnicator", "Third", "Delete", "Move"]
    git(index.top, "reset", "-q", "--hard", "HEAD~2")
    index.refresh()
    index.assert_as_fresh()
    assert index.commits_of("a.py") == ["Begin", "Polish the frobnicator", "Third"]
    assert index.commits_of("b.py") == ["Begin", "Polish the frobnicator"]


def test_a_known_commit_that_git_threw_away_is_no_hindrance(index: HistoryIndex) -> None:
    index.refresh()
    git(index.top, "commit", "-q", "--amend", "-m", "Amended")
    git(index.top, "reflog", "expire", "--expire=now", "--all")
    git(index.top, "gc", "-q", "--prune=now")
    index.refresh()
    index.assert_as_fresh()


def test_a_file_that_comes_back_has_its_past_again(index: HistoryIndex) -> None:
    index.refresh()
    (index.top / "b.py").unlink()
    index.refresh()
    assert index.commits_of("b.py") == []
    git(index.top, "checkout", "-q", "b.py")
    index.refresh()
    index.assert_as_fresh()
    assert index.commits_of("b.py") == ["Begin", "Polish the frobnicator"]


def test_a_file_that_was_deleted_before_the_first_index_and_is_written_anew_has_its_past(
    index: HistoryIndex,
) -> None:
    commit(index.top, {"b.py": None}, "Delete")
    index.refresh()
    write(index.top, {"b.py": "new = 1\n"})
    index.refresh()
    index.assert_as_fresh()
    assert "Delete" in index.commits_of("b.py")


@pytest.mark.parametrize("bound", [0, 1, 3])
def test_the_oldest_commits_make_room(index: HistoryIndex, bound: int) -> None:
    index.config = IndexConfig(history=bound)
    index.refresh()
    for number in range(2):
        commit(index.top, {"b.py": f"y = {number}\n", "c.py": f"z = {number}\n"}, f"More {number}")
        index.refresh()
        index.assert_as_fresh()
        commit(index.top, {"a.py": f"x = {number}\n"}, f"Alone {number}")
    index.refresh()
    assert len(index.rows()["commits"]) == bound
    index.assert_as_fresh()


def test_the_oldest_come_back_when_newer_ones_go(index: HistoryIndex) -> None:
    index.config = IndexConfig(history=2)
    commit(index.top, {"a.py": None, "moved.py": (index.top / "a.py").read_text()}, "Move")
    commit(index.top, {"c.py": "z = 7\n"}, "Newest")
    index.refresh()
    assert index.commits_of("moved.py") == ["Move"]
    git(index.top, "reset", "-q", "--hard", "HEAD~1")
    index.refresh()
    index.assert_as_fresh()
    assert index.commits_of("moved.py") == ["Third", "Move"]


def test_another_bound_is_a_new_history(index: HistoryIndex) -> None:
    for config in (IndexConfig(history=2), IndexConfig(), IndexConfig(pair_bound=1)):
        index.config = config
        index.refresh()
        index.assert_as_fresh()


def test_there_may_be_no_commit_yet(tmp_path: Path) -> None:
    top = init_repository(tmp_path / "repo")
    write(top, {"a.py": "x = 1\n"})
    index = HistoryIndex(top, tmp_path / "index.sqlite")
    with contextlib.closing(index.conn):
        assert index.refresh() == 0
        assert index.rows()["commits"] == []
        commit(top, {}, "First")
        assert index.refresh() == 1
        index.assert_as_fresh()
        git(top, "update-ref", "-d", "HEAD")
        index.refresh()
        assert index.rows()["commits"] == []


def test_a_shallow_clone_grows_with_its_history(top: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{top}", "clone")
    index = HistoryIndex(tmp_path / "clone", tmp_path / "index.sqlite")
    with contextlib.closing(index.conn):
        assert index.refresh() == 1
        git(index.top, "fetch", "-q", "--unshallow")
        assert index.refresh() == 3
        index.assert_as_fresh()


def test_a_partial_clone_has_a_history(top: Path, tmp_path: Path) -> None:
    git(top, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{top}", "clone")
    index = HistoryIndex(tmp_path / "clone", tmp_path / "index.sqlite")
    with contextlib.closing(index.conn):
        index.refresh()
        commit(top, {"b.py": "y = 7\n"}, "Fourth")
        git(index.top, "pull", "-q")
        assert index.refresh() == 1
        index.assert_as_fresh()


def test_replacements_of_commits_are_not_followed(index: HistoryIndex) -> None:
    index.refresh()
    git(index.top, "replace", "HEAD~1", "HEAD~2")
    commit(index.top, {"b.py": "y = 7\n"}, "Fourth")
    assert index.refresh() == 1
    index.assert_as_fresh()
    assert len(index.rows()["commits"]) == 4


def test_odd_names_texts_and_dates_are_kept_as_they_can_be(index: HistoryIndex) -> None:
    index.refresh()
    name = 'new\nline "quoted" \u00e9'
    commit(index.top, {name: TEXT.format(*"8" * 9)}, "Odd")
    tree = git(index.top, "rev-parse", "HEAD^{tree}")
    head = git(index.top, "rev-parse", "HEAD")
    dates = (-5, 0, 253402300800, FIRST_DATE)
    for date in dates:
        text = (
            f"tree {tree}\nparent {head}\nauthor \xf6 <> 1 +0000\ncommitter <> {date} +0000\n\n\xf6\n".encode(
                "latin-1"
            )
        )
        head = git(index.top, "hash-object", "-t", "commit", "-w", "--stdin", "--literally", feed=text)
    git(index.top, "reset", "-q", head)
    assert index.refresh() == 1 + len(dates)
    index.assert_as_fresh()
    assert index.commits_of(name) == ["Odd"]
    assert [row[1:4] for row in index.rows()["commits"]][-2] == (
        "\ufffd",
        "\ufffd",
        "9999-12-31T23:59:59+00:00",
    )


def test_a_past_under_a_name_that_is_no_text_is_found_after_a_rename(index: HistoryIndex) -> None:
    latin = "caf\udce9.py"
    commit(index.top, {latin: TEXT.format(*"9" * 9)}, "Latin")
    index.refresh()
    git(index.top, "mv", latin, "cafe.py")
    git(index.top, "commit", "-q", "-m", "Mend", date=FIRST_DATE + 999)
    assert index.refresh() == 1
    assert index.commits_of("cafe.py") == ["Latin", "Mend"]
    index.assert_as_fresh()
