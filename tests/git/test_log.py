import os
from pathlib import Path

import pytest
from testing.patience import PATIENCE
from testing.repositories import FIRST_DATE, commit, git, make_repository

from clean_room_agent.errors import GitError
from clean_room_agent.git.log import (
    LogEntry,
    ask_log,
    graph_marks,
    lacks_contents,
    read_log,
    resolve_commit,
    stream_changes,
    walk,
)

LATIN = os.fsdecode(b"caf\xe9.txt")
LINES = "".join(f"{number}\n" for number in range(9))


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = make_repository(
        tmp_path / "repo", {"a.py": LINES, "bin": b"\0\1"}, message="Begin\n\n R100 at the start"
    )
    commit(top, {"a.py": None, "b.py": f"{LINES}x\n", "bin": b"\0\2", LATIN: b"\xe9\n"}, "Rename")
    git(top, "commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "")
    git(top, "checkout", "-q", "-b", "side", "HEAD~1")
    commit(top, {'sp ace\n"line"': "x\n"}, "Side")
    git(top, "checkout", "-q", "main")
    git(top, "merge", "-q", "--no-ff", "-m", "Merge", "side")
    return top


def read(top: Path, *revisions: str, limit: int | None = 100, partial: bool = False) -> dict[str, LogEntry]:
    answer = ask_log(top, *(revisions or ("HEAD",)), limit=limit, partial=partial)
    return {entry.message: entry for entry in read_log(answer.take())}


def test_the_log_has_every_commit_but_merges(top: Path) -> None:
    log = read(top)
    assert set(log) == {"Side", "", "Rename", "Begin\n\n R100 at the start"}
    begin = log["Begin\n\n R100 at the start"]
    assert (begin.author, begin.timestamp, begin.parents) == ("Ada Example", FIRST_DATE, "")
    assert begin.hash == git(top, "rev-list", "--max-parents=0", "HEAD")
    assert (begin.paths, begin.files_changed) == (["a.py", "bin"], 2)
    assert (log[""].paths, log[""].files_changed) == ([], 0)
    assert log["Side"].paths == ['sp ace\n"line"']
    assert (log["Rename"].renames, log["Rename"].files_changed) == ([("a.py", "b.py")], 3)
    assert log["Rename"].paths == ["b.py", "bin", LATIN]


def test_the_log_is_bounded_or_goes_on_from_a_commit_with_merges_and_parents(top: Path) -> None:
    assert len(read(top, limit=2)) == 2
    first = git(top, "rev-list", "--max-parents=0", "HEAD")
    log = read(top, "HEAD", f"^{first}", limit=None)
    assert set(log) == {"Merge", "Side", "", "Rename"}
    assert log["Merge"].is_merge
    assert log["Merge"].parents == git(top, "log", "-1", "--format=%P")
    assert log["Merge"].files_changed == 0
    assert log["Rename"].parents == first
    assert read(top, "HEAD", "^HEAD", limit=None) == {}
    with pytest.raises(GitError, match="bad object"):
        read(top, "HEAD", f"^{'0' * 40}")


def test_a_partial_clone_has_a_log_without_contents(top: Path, tmp_path: Path) -> None:
    git(top, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{top}", "clone")
    clone = tmp_path / "clone"
    assert lacks_contents(clone)
    assert not lacks_contents(top)
    found = read(clone, partial=True)
    assert set(found) == set(read(top))
    assert found["Rename"].renames == []


def test_submodules_are_counted_but_not_named(top: Path) -> None:
    git(top, "update-index", "--add", "--cacheinfo", f"160000,{git(top, 'rev-parse', 'HEAD')},vendored")
    git(top, "mv", "b.py", "c.py")
    git(top, "commit", "-q", "-m", "Vendor")
    entry = read(top)["Vendor"]
    assert (entry.files_changed, entry.paths, entry.renames) == (2, ["c.py"], [("b.py", "c.py")])


def test_text_of_any_bytes_and_dates_beyond_all_bounds_are_read(top: Path) -> None:
    tree = git(top, "rev-parse", "HEAD^{tree}")
    odd = (
        b"tree %s\nauthor J\xf6rg <> 99999999999999 +0000\ncommitter <> 253402300800 +0000\n\nSch\xf6n\nweiter\n"
        % tree.encode()
    )
    name = git(top, "hash-object", "-t", "commit", "-w", "--stdin", "--literally", feed=odd)
    (entry,) = read(top, name).values()
    assert (entry.author, entry.message) == ("J\ufffdrg", "Sch\ufffdn\nweiter")
    assert entry.timestamp == 253402300800


def test_an_answer_that_is_not_wanted_ends(top: Path) -> None:
    answer = ask_log(top, "HEAD", limit=9, partial=False)
    answer.drop()
    answer.join(timeout=PATIENCE)
    assert not answer.is_alive()


def test_walks_give_what_a_commit_reaches_in_order(top: Path) -> None:
    head = git(top, "rev-parse", "HEAD")
    assert list(walk(top, head)) == git(top, "log", "--format=%H").split()
    assert next(walk(top, head)) == head


def test_shallow_and_grafted_graphs_are_marked(top: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{top}", "clone")
    clone = tmp_path / "clone"
    shallow = graph_marks(clone, partial=False)
    git(clone, "fetch", "-q", "--unshallow")
    whole = graph_marks(clone, partial=False)
    assert whole == graph_marks(top, partial=False)
    git(clone, "worktree", "add", "-q", "../linked")
    assert graph_marks(tmp_path / "linked", partial=False) == whole
    (clone / ".git/info/grafts").write_text(f"{git(clone, 'rev-parse', 'HEAD')}\n")
    grafted = graph_marks(clone, partial=False)
    assert graph_marks(tmp_path / "linked", partial=False) == grafted
    assert len({shallow, whole, grafted, graph_marks(clone, partial=True)}) == 4


def test_parents_come_before_children_with_counts_of_lines(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "shop", {"a.py": "A = 1\n", "b.bin": b"\0\1"})
    commit(
        top, {"a.py": "A = 2\nB = 3\n", "b.bin": b"\0\2", "new name.py": "C = 1\n"}, "Change\n\nand say why"
    )
    last = commit(top, {"a.py": None}, "Remove")
    (first, second, third) = stream_changes(top / ".git", last)
    assert (first.parents, first.files, first.message) == ((), (), "Begin")
    assert second.parents == (first.hash,)
    assert second.message == "Change\n\nand say why"
    assert second.author == "Ada Example <ada@example.org>"
    assert [(one.path, one.status, one.lines, one.is_file) for one in second.files] == [
        ("a.py", "M", 3, True),
        ("b.bin", "M", None, True),
        ("new name.py", "A", 1, True),
    ]
    assert [(one.path, one.status, one.lines) for one in third.files] == [("a.py", "D", 2)]


def test_a_rename_is_two_paths_and_a_link_is_no_file(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "shop", {"a.py": "A = 1\n" * 20})
    git(top, "mv", "a.py", "b.py")
    (top / "link.py").symlink_to("b.py")
    changes = list(stream_changes(top / ".git", commit(top, {}, "Move")))
    assert [(one.path, one.status, one.is_file) for one in changes[-1].files] == [
        ("a.py", "D", True),
        ("b.py", "A", True),
        ("link.py", "A", False),
    ]


def test_a_merge_names_its_parents_and_no_files(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "shop", {"a.py": "A = 1\n"})
    git(top, "checkout", "-q", "-b", "side")
    commit(top, {"b.py": "B = 1\n"}, "Side")
    git(top, "checkout", "-q", "main")
    commit(top, {"c.py": "C = 1\n"}, "Main")
    git(top, "merge", "-q", "--no-ff", "-m", "Join", "side")
    (*_, merge) = stream_changes(top / ".git", git(top, "rev-parse", "HEAD"))
    assert (len(merge.parents), merge.files) == (2, ())


def test_a_revision_is_resolved_or_none(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "shop", {"a.py": "A = 1\n"})
    assert resolve_commit(top / ".git", "main") == git(top, "rev-parse", "HEAD")
    assert resolve_commit(top / ".git", "--output=x") is None
    with pytest.raises(GitError):
        list(stream_changes(top / ".git", "f" * 40))
