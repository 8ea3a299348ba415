"""What the retrieval benchmark counts, compares with and asks."""

from pathlib import Path

import pytest
from benchmarks.commits.checkouts import git as read_git
from benchmarks.retrieval.__main__ import by_snapshot, texts_for
from benchmarks.retrieval.checkouts import checkout, indexed, lacking, source_files
from benchmarks.retrieval.metrics import Score, mean_of, percentile, score_of
from benchmarks.retrieval.rankings import Bm25, ask_ours, read_answers
from benchmarks.retrieval.result_table import Result, render_results
from benchmarks.retrieval.tasks import Task, find_tasks, is_task, read_tasks, words_of
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


def test_a_path_told_twice_takes_one_place() -> None:
    assert score_of(("b",), ("a", "a", "a", "b")).first == 1 / 2


def test_every_task_counts_the_same_in_a_mean() -> None:
    mean = mean_of([score_of(("a",), ORDER), score_of(("x", "j"), ORDER)])
    assert mean.recall == (0.5, 0.5, 0.5, 0.75, 0.75, 0.75)
    assert (mean.first, mean.all_found, mean.hit) == (0.55, 0.5, 0.5)


def test_percentiles_are_values_that_occurred() -> None:
    values = [float(number) for number in range(20, 0, -1)]
    assert [percentile(values, share) for share in (0, 0.5, 0.95, 1)] == [1, 11, 20, 20]


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


def test_a_task_file_is_read_as_it_was_written(mirror: Path, tmp_path: Path) -> None:
    found = tuple(find_tasks(mirror, "o/r", back=(5,)))
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(f"{one.model_dump_json()}\n" for one in found), encoding="utf-8")
    assert read_tasks(path) == found


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


def test_tasks_are_asked_by_snapshot() -> None:
    tasks = [task("1"), task("2", repository="o/s"), task("3")]
    asked = list(by_snapshot("g", tasks, []))
    assert [(one.repository, [task.id for task in one.tasks]) for one in asked] == [
        ("o/r", ["1", "3"]),
        ("o/s", ["2"]),
    ]
    assert list(by_snapshot("g", tasks, ["o/s"])) == asked[1:]
    assert texts_for("s", [task("1", words="x"), task("2", repository="o/s", words="y")]) == ("y",)


def test_an_answer_that_was_cut_off_is_none(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    assert list(read_answers(path)) == []
    whole = '{"id": "1", "ranked": ["a"], "wall_ms": 1, "cpu_ms": 1}\n'
    path.write_text(whole + whole[:20], encoding="utf-8")
    assert [answer.id for answer in read_answers(path)] == ["1"]


def test_the_table_has_a_row_for_each_ranking_of_a_group() -> None:
    results = [
        Result(
            task_id=str(place),
            group="g",
            repository="o/r",
            ranking=ranking,
            ranked=order,
            score=score_of(("a",), order),
            cpu_ms=2,
        )
        for ranking, order in (("BM25", ("b", "a")), ("cra", ("a",)))
        for place in range(2)
    ]
    shown = render_results(results, ["g"]).split("\n")
    assert (
        shown[2]
        == "| g | 2 | cra | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 | 2.0 | 2.0 |"
    )
    assert (
        shown[3]
        == "| g | 2 | BM25 | 0.0 | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 | 50.0 | 100.0 | 100.0 | 2.0 | 2.0 |"
    )
    assert [line.split(" | ")[0] for line in shown[-2:]] == ["| o/r", "| o/r"]
