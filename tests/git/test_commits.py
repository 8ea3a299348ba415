"""Temporary indexes leave the user's index alone."""

import os
from pathlib import Path

import pytest
from testing.repositories import fingerprint, git, make_repository, read_tree, write

from clean_room_agent.errors import GitError
from clean_room_agent.git.command import names
from clean_room_agent.git.commits import (
    EXECUTABLE,
    FILE,
    LINK,
    FileChange,
    commit_files,
    copied_index,
    scratch_index,
)
from clean_room_agent.git.history import changed_paths, list_tree
from clean_room_agent.git.repository import Repository, open_repository

WHEN = "1700009999 +0000"


def listed(repo: Repository, pins: dict[str, str]) -> tuple[str, ...]:
    return tuple(names(repo.git("ls-files", "-z", pins=pins)))


def test_an_index_holds_a_tree_or_nothing_and_goes_afterwards(repo: Repository) -> None:
    with scratch_index(repo, repo.head) as pins:
        assert listed(repo, pins) == ("a.py", "b.py", "c.py")
    with scratch_index(repo, None) as pins:
        assert listed(repo, pins) == ()
    assert not os.path.exists(pins["GIT_INDEX_FILE"])  # noqa: PTH110 - one call


def test_a_copy_has_what_is_staged_and_the_original_stays(repo: Repository) -> None:
    write(repo.top, {"new.py": "n\n"})
    git(repo.top, "add", "new.py")
    before = (repo.git_dir / "index").read_bytes()
    with copied_index(repo) as pins:
        assert "new.py" in listed(repo, pins)
        repo.git("rm", "-q", "--cached", "new.py", pins=pins)
        assert "new.py" not in listed(repo, pins)
    assert (repo.git_dir / "index").read_bytes() == before


def text(data: bytes, mode: str = FILE) -> FileChange:
    return FileChange(data=data, mode=mode)


def test_a_commit_is_made_of_the_given_bytes_alone(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", {"a.py": "a\n", "b.py": "b\n", "c.py": "c\n", "d.py": "d\n"})
    write(top, {"a.py": "uncommitted\n", "noise": ""})
    before = fingerprint(top)
    repo = open_repository(top)
    made = commit_files(
        repo,
        repo.head,
        {
            "a.py": text(b"a2\n"),
            "b.py": None,
            "c.py": text(b"c\n", EXECUTABLE),
            "deep/new\xe9 file.py": text(b"\xff\0"),
            "d.py": None,
            "d.py/inner": text(b"in\n"),
            "link": text(b"a.py", LINK),
        },
        "Do it\n\nTask: t1\n",
        date=WHEN,
    )
    assert read_tree(top, made) == {
        "a.py": b"a2\n",
        "c.py": b"c\n",
        "deep/new\xe9 file.py": b"\xff\0",
        "d.py/inner": b"in\n",
        "link": b"a.py",
    }
    assert [list_tree(repo, made)[path].mode for path in ("c.py", "link")] == [EXECUTABLE, LINK]
    shown = git(top, "show", "-s", "--format=%an <%ae>|%cn|%ct|%P|%B", made)
    assert shown == f"Ada Example <ada@example.org>|Ada Example|1700009999|{repo.head}|Do it\n\nTask: t1\n"
    assert fingerprint(top) == before


@pytest.mark.parametrize(
    ("setting", "attributes"), [("true", ""), ("false", "* text=auto eol=crlf\n"), ("false", "")]
)
def test_line_ends_are_stored_as_git_add_would(tmp_path: Path, setting: str, attributes: str) -> None:
    top = make_repository(
        tmp_path / "repo",
        {".gitattributes": attributes, "lf.txt": b"1\n2\n3\n", "crlf.txt": b"1\r\n2\r\n3\r\n"},
    )
    git(top, "config", "core.autocrlf", setting)
    (top / "lf.txt").unlink()
    git(top, "checkout", "--", "lf.txt")
    repo = open_repository(top)
    files = {name: text((top / name).read_bytes().replace(b"2", b"two")) for name in ("lf.txt", "crlf.txt")}
    made = commit_files(repo, repo.head, files, "m")
    write(top, {name: change.data for name, change in files.items()})
    git(top, "add", "-A")
    assert git(top, "rev-parse", f"{made}^{{tree}}") == git(top, "write-tree")
    numbers = git(top, "diff", "--numstat", repo.head, made, "--", "lf.txt")
    assert numbers == "1\t1\tlf.txt"


def test_filter_drivers_do_not_run(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", {".gitattributes": "*.bin filter=lock\n", "x.bin": "old"})
    git(top, "config", "filter.lock.clean", f"touch {tmp_path}/ran; cat")
    repo = open_repository(top)
    made = commit_files(repo, repo.head, {"x.bin": text(b"new")}, "m")
    assert read_tree(top, made)["x.bin"] == b"new"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "path",
    ["../x", "/x", "a//b", "./x", "", ".git/hooks/x", "a/.GIT/x", "git~1/x", ".git /x", ".g\u200cit/x"],
)
def test_a_path_that_leaves_the_tree_or_enters_git_is_refused(tmp_path: Path, path: str) -> None:
    repo = open_repository(make_repository(tmp_path / "repo", {"a.py": ""}))
    before = fingerprint(tmp_path / "repo")
    with pytest.raises(GitError):
        commit_files(repo, repo.head, {path: text(b"x")}, "m")
    assert fingerprint(tmp_path / "repo") == before
    assert not (tmp_path / "x").exists()


def test_nothing_to_change_gives_a_commit_with_the_same_tree(tmp_path: Path) -> None:
    repo = open_repository(make_repository(tmp_path / "repo", {"a.py": ""}))
    made = commit_files(repo, repo.head, {}, "m")
    assert changed_paths(repo, repo.head, made) == ()


def test_a_file_becomes_a_folder_and_back(tmp_path: Path) -> None:
    repo = open_repository(make_repository(tmp_path / "project", {"a": "text\n"}))
    made = commit_files(repo, repo.head, {"a": None, "a/b.py": text(b"b = 1\n")}, "message")
    assert list(list_tree(repo, made)) == ["a/b.py"]
    back = commit_files(repo, made, {"a": text(b"text\n"), "a/b.py": None}, "message")
    assert list_tree(repo, back) == list_tree(repo, repo.head)
