"""What the retrieval benchmark counts, compares with and asks."""

from pathlib import Path

import pytest
from benchmarks.commits.checkouts import git as read_git
from benchmarks.retrieval.checkouts import checkout, indexed, lacking, source_files
from benchmarks.retrieval.metrics import Score, score_of
from benchmarks.retrieval.rankings import Bm25, ask_ours
from benchmarks.retrieval.tasks import Task, find_tasks, is_task, words_of
from testing.repositories import commit, git, make_repository

ORDER = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k")


def task(
    name: str, *, repository: str = "o/r", words: str = "words", files: tuple[str, ...] = ("a.py",)
) -> Task:
    return Task(id=name, repo=repository, snapshot_commit="0" * 40, commit=name, task=words, gold_files=files)


def test_the_figures_of_one_order() -> None:
    one = score_of(("b", "k"), ORDER)
    assert one == Score(recall=(0, 0.5, 0.5, 0.5, 1, 1), first=0.5, all_found=0, hit=1)


def test_what_is_not_found_counts_as_nothing() -> None:
    none = score_of(("x",), ORDER)
    assert (*none.recall, none.first, none.all_found, none.hit) == (0,) * 9
    assert score_of(("a", "x"), ORDER).recall == (0.5,) * 6
    assert score_of(("x",), ()) == none


def test_bm25_prefers_rare_words_and_short_files() -> None:
    texts = {
        "app.py": "def run(): return load_config()\n",
        "config.py": "def load_config(): ...\n",
        "long.py": "def load_config(): ...\n" + "value = other + thing\n" * 50,
        "log.py": "def write(line): print(line)\n",
    }
    made = Bm25.over(texts)
    assert made.rank("load_config is broken") == ("config.py", "app.py", "long.py")
    assert made.rank("writes no lines") == ("log.py",)
    assert made.rank("nothing here") == ()


def test_a_message_that_names_people_and_chores() -> None:
    assert words_of("Fix it\n\nCo-authored-by: Ada <a@b>\nSigned-off-by: Ada\n") == "Fix it"
    held = frozenset({"a.py", "b.py", "c.py", "d.py", "e.py", "f.py"})
    assert is_task("Fix the reader of lines", ("a.py",), held)
    for words, files in (
        ("Fix it", ("a.py",)),
        ("Bump version to 2.0", ("a.py",)),
        ('Revert "Fix the reader of lines"', ("a.py",)),
        ("Fix the reader of lines", ()),
        ("Fix the reader of lines", ("a.py", "new.py")),
        ("Fix the reader of lines", tuple(sorted(held))),
    ):
        assert not is_task(words, files, held)


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    top = make_repository(
        tmp_path / "mirror", {"lib/a.py": "a = 1\n", "lib/b.py": "b = 1\n", "README.md": "x\n"}
    )
    commit(top, {"lib/a.py": "a = 2\n"}, "Let a be two for once")
    commit(top, {"README.md": "y\n"}, "Say something in the readme")
    commit(top, {"lib/new.py": "n = 1\n", "lib/b.py": "b = 3\n"}, "Create a module that is new")
    commit(top, {"lib/b.py": "b = 4\n", "tests/test_b.py": "assert b == 4\n"}, "Let b be four at last")
    commit(top, {"lib/a.py": "a = 5\n"}, "Bump version to a high number")
    return top


def test_tasks_are_the_fit_commits_after_a_snapshot(mirror: Path) -> None:
    found = tuple(find_tasks(mirror, "o/r", back=(5,)))
    assert [(one.task, one.gold_files) for one in found] == [
        ("Let a be two for once", ("lib/a.py",)),
        ("Let b be four at last", ("lib/b.py",)),
    ]
    assert {one.snapshot_commit for one in found} == {git(mirror, "rev-parse", "HEAD~5")}
    assert [one.task for one in find_tasks(mirror, "o/r", back=(5, 2), each=1)] == [
        "Let a be two for once",
        "Let b be four at last",
    ]


def test_a_snapshot_knows_nothing_of_what_came_later(mirror: Path, tmp_path: Path) -> None:
    before = git(mirror, "rev-parse", "HEAD~3")
    top = checkout(mirror, before, tmp_path / "w" / "s")
    assert read_git(top, "status", "--porcelain") == ""
    assert read_git(top, "log", "--all", "--format=%s").split("\n") == [
        "Say something in the readme",
        "Let a be two for once",
        "Begin",
    ]
    assert read_git(top, "rev-parse", "HEAD") == before
    assert source_files(top) == ("lib/a.py", "lib/b.py")
    assert lacking(top) == 0


def test_the_products_own_path_ranks_a_snapshot(mirror: Path, tmp_path: Path) -> None:
    top = indexed(checkout(mirror, git(mirror, "rev-parse", "HEAD~5"), tmp_path / "w" / "s"))
    answers = ask_ours(top, [task("1", words="b in lib/b.py is wrong"), task("2", words="a")])
    assert [answer.id for answer in answers] == ["1", "2"]
    assert answers[0].ranked[0] == "lib/b.py"


def test_a_mirror_may_lack_contents(mirror: Path, tmp_path: Path) -> None:
    blob = git(mirror, "rev-parse", "HEAD:lib/b.py")
    (mirror / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    top = indexed(checkout(mirror, git(mirror, "rev-parse", "HEAD"), tmp_path / "w" / "s"))
    assert lacking(top) == 1
    assert source_files(top) == ("lib/a.py", "lib/new.py", "tests/test_b.py")
    assert ask_ours(top, [task("1", words="lib/a.py")])[0].ranked[0] == "lib/a.py"
