"""The run's commits in a real repository; whoever tests what stands on them uses commits in memory."""

from pathlib import Path

import pytest
from testing.repositories import Files, make_repository

from clean_room_agent.artifacts.edits import EditCode, EditReport
from clean_room_agent.cancellation import Interrupts
from clean_room_agent.git.commits import FileChange
from clean_room_agent.git.refs import list_refs
from clean_room_agent.git.repository import open_repository
from clean_room_agent.orchestrator.commits import RunCommits

FILES: Files = {"a.py": "a = 0\n", "win.py": b"w = 0\r\n", "logo.png": b"\x89PNG\x00"}


@pytest.fixture
def commits(tmp_path: Path) -> RunCommits:
    repo = open_repository(make_repository(tmp_path / "project", FILES))
    return RunCommits(repo, "task", repo.head, Interrupts())


def changed(commits: RunCommits, **texts: str) -> dict[str, FileChange | None]:
    encoded = commits.tree().encode({f"{name}.py": text for name, text in texts.items()})
    assert not isinstance(encoded, EditReport)
    return encoded


def test_a_commit_is_made_on_the_head_and_kept_under_the_runs_refs(commits: RunCommits) -> None:
    made = commits.commit(changed(commits, a="a = 1\n"), "message", keep_as="attempts/p1/s1/1")
    assert commits.tree(made).read("a.py").text == "a = 1\n"
    assert commits.tree().read("a.py").text == "a = 0\n", "the head is where it was"
    assert list_refs(commits.repo, "refs/cra/task") == {"refs/cra/task/attempts/p1/s1/1": made}
    assert commits.exists(made)
    assert not commits.exists("1" * 40)


def test_line_ends_survive(commits: RunCommits) -> None:
    made = commits.commit(changed(commits, win="w = 1\n"), "message")
    assert commits.tree(made).data("win.py") == b"w = 1\r\n"


def test_what_is_no_text_cannot_be_edited(commits: RunCommits) -> None:
    texts, refused = commits.tree().texts(("a.py", "logo.png", "gone.py"))
    assert list(texts) == ["a.py"]
    assert list(refused) == ["logo.png"]
    report = commits.tree().encode({"logo.png": "x"})
    assert isinstance(report, EditReport)
    assert report.code is EditCode.PROTECTED


def test_the_head_is_kept_once_something_is_accepted(commits: RunCommits) -> None:
    commits.keep_head()
    assert list_refs(commits.repo, "refs/cra/task") == {}
    commits.head = commits.commit(changed(commits, a="a = 1\n"), "message")
    commits.keep_head()
    again = RunCommits(commits.repo, "task", commits.base, Interrupts())
    again.head = again.commit(changed(again, a="a = 2\n"), "message", parent=commits.head)
    again.keep_head()
    assert list_refs(commits.repo, "refs/cra/task") == {"refs/cra/task/head": again.head}


def test_what_the_run_changed_is_read_for_prompts_and_for_people(commits: RunCommits) -> None:
    assert commits.readable_diff() == ""
    commits.head = commits.commit(changed(commits, a="a = 1\n"), "message")
    assert [one.path for one in commits.changed(commits.base, commits.head)] == ["a.py"]
    assert "+a = 1" in commits.readable_diff()
    assert "index " in commits.diff(commits.base, commits.head)


def test_what_undoes_a_change_is_the_bases_own_file(commits: RunCommits) -> None:
    base = commits.tree(commits.base)
    assert base.change("a.py") == FileChange(data=b"a = 0\n", mode="100644")
    assert base.change("new.py") is None


def test_a_result_lands_as_a_branch(commits: RunCommits) -> None:
    commits.head = commits.commit(changed(commits, a="a = 1\n"), "message")
    assert commits.land("cra/abc", ("", "")) == "cra/abc"
    assert list_refs(commits.repo, "refs/heads/cra/") == {"refs/heads/cra/abc": commits.head}


def test_what_git_converts_is_neither_edited_nor_created(tmp_path: Path) -> None:
    files: Files = {
        ".gitattributes": "*.txt working-tree-encoding=UTF-16LE\n",
        "a.txt": "a".encode("utf-16-le"),
    }
    repo = open_repository(make_repository(tmp_path / "project", files))
    tree = RunCommits(repo, "task", repo.head, Interrupts()).tree()
    assert "a file that git converts" in tree.places.obstacle("a.txt")
    texts, refused = tree.texts(("a.txt", "new.txt"))
    assert texts == {}
    assert refused == dict.fromkeys(
        ("a.txt", "new.txt"), "git converts it to UTF-16LE in a working tree (working-tree-encoding)"
    )


def test_the_trees_of_a_run_know_the_files_that_the_user_names(tmp_path: Path) -> None:
    repo = open_repository(make_repository(tmp_path / "r", {"a.py": "", "b.py": ""}))
    places = RunCommits(repo, "task", repo.head, Interrupts(), only=("a.py",)).tree().places
    assert (places.outside("a.py"), bool(places.outside("b.py"))) == ("", True)
    assert RunCommits(repo, "task", repo.head, Interrupts()).tree().places.outside("b.py") == ""
