import os
from pathlib import Path

import pytest
from testing.repositories import commit, git, make_repository, write

from clean_room_agent.errors import GitError
from clean_room_agent.git.history import (
    ChangedPath,
    FileStat,
    changed_paths,
    diff,
    diff_stat,
    list_tree,
    read_blob,
    read_object,
    readable_diff,
)
from clean_room_agent.git.repository import open_repository

LATIN = os.fsdecode(b"caf\xe9.txt")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = make_repository(
        tmp_path / "repo", {"a.py": "1\n2\n3\n4\n", "bin": b"\0\1"}, message="Begin\n\nat the start"
    )
    commit(top, {"a.py": None, "b.py": "1\n2\n3\n4\n5\n", "bin": b"\0\2", LATIN: b"\xe9\n"}, "Rename")
    git(top, "commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "")
    git(top, "checkout", "-q", "-b", "side", "HEAD~1")
    commit(top, {"sp ace\nline": "x\n"}, "Side")
    git(top, "checkout", "-q", "main")
    git(top, "merge", "-q", "--no-ff", "-m", "Merge", "side")
    return top


def test_differences_are_plain_whatever_is_configured(top: Path) -> None:
    for key, value in (
        ("diff.external", "false"),
        ("diff.noprefix", "true"),
        ("diff.context", "0"),
        ("diff.renames", "copies"),
        ("color.ui", "always"),
        ("diff.x.textconv", "false"),
        ("diff.x.command", "false"),
    ):
        git(top, "config", key, value)
    write(top, {".git/info/attributes": "* diff=x\n"})
    repo = open_repository(top)
    base = git(top, "rev-list", "--max-parents=0", "HEAD")
    text = diff(repo, base, repo.head, "a.py", "b.py")
    assert text.startswith("diff --git a/a.py b/a.py\ndeleted file mode 100644\n")
    assert "\n+++ b/b.py\n" in text
    assert "caf" not in text
    assert changed_paths(repo, base, repo.head) == (
        ChangedPath(path="a.py", status="D"),
        ChangedPath(path="b.py", status="A"),
        ChangedPath(path="bin", status="M"),
        ChangedPath(path=LATIN, status="A"),
        ChangedPath(path="sp ace\nline", status="A"),
    )
    assert diff_stat(repo, base, repo.head)[:3] == (
        FileStat(path="a.py", added=0, deleted=4),
        FileStat(path="b.py", added=5, deleted=0),
        FileStat(path="bin", added=None, deleted=None),
    )
    assert diff(repo, base, base) == ""


def test_blobs_modes_and_trees_are_read_by_path(top: Path) -> None:
    (top / "run.sh").write_text("#!/bin/sh\n")
    (top / "run.sh").chmod(0o755)
    (top / "link").symlink_to("b.py")
    commit(top, {"sub/x.py": "x\n", "a[b]*.py": "glob\n"}, "More")
    repo = open_repository(top)
    assert read_blob(repo, repo.head, "bin") == b"\0\2"
    assert read_blob(repo, repo.head, LATIN) == b"\xe9\n"
    assert read_blob(repo, repo.head, "sp ace\nline") == b"x\n"
    assert read_blob(repo, repo.head, "a[b]*.py") == b"glob\n"
    assert read_blob(repo, repo.head, "sub") is None
    assert read_blob(repo, repo.head, "nothing") is None
    with pytest.raises(GitError):
        read_blob(repo, "0" * 40, "bin")
    entries = list_tree(repo, repo.head)
    assert [entries[path].mode for path in ("run.sh", "link", "b.py")] == ["100755", "120000", "100644"]
    assert sorted(entries) == sorted(
        ["a[b]*.py", "b.py", "bin", LATIN, "link", "run.sh", "sp ace\nline", "sub/x.py"]
    )
    assert read_object(repo, entries["bin"].object_name) == b"\0\2"


def test_an_attribute_hides_no_text_from_a_difference(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "r", {"a.py": "x = 1\n", ".gitattributes": "*.py -diff\n*.md binary\n"})
    base = git(top, "rev-parse", "HEAD")
    after = commit(top, {"a.py": "x = 2\n", "new.md": "# New\n", "image.png": b"\0\1"}, "change")
    repo = open_repository(top)
    shown = diff(repo, base, after)
    assert "-x = 1\n+x = 2\n" in shown
    assert "+# New\n" in shown
    assert shown.count("GIT binary patch") == 1
    assert [line.split(" b/")[1] for line in shown.split("\n") if line.startswith("diff --git")] == [
        "a.py",
        "image.png",
        "new.md",
    ]
    stats = {stat.path: (stat.added, stat.deleted) for stat in diff_stat(repo, base, after)}
    assert stats == {"a.py": (1, 1), "image.png": (None, None), "new.md": (1, 0)}


def test_a_reader_sees_no_names_of_objects_and_no_binary_patch(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "r", {"a.py": "x = 1\rindex 1\n", "b.png": b"\0\1"})
    base = git(top, "rev-parse", "HEAD")
    after = commit(top, {"a.py": "x = 2\rindex 2\n", "b.png": b"\0\2" * 400, "c.py": "y = 1\n"}, "change")
    assert readable_diff(open_repository(top), base, after) == (
        "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\rindex 1\n+x = 2\rindex 2\n"
        "diff --git a/b.png b/b.png\nBinary files differ\n"
        "diff --git a/c.py b/c.py\nnew file mode 100644\n--- /dev/null\n+++ b/c.py\n@@ -0,0 +1 @@\n+y = 1\n"
    )


def test_every_kind_of_change_is_called_as_git_calls_it(tmp_path: Path) -> None:
    top = make_repository(
        tmp_path / "r", {"a.py": "a\n", "run.sh": "r\n", "old.py": "o\n", "odd \u00e9\n.py": "1\n"}
    )
    repo = open_repository(top)
    (top / "a.py").unlink()
    (top / "a.py").symlink_to("run.sh")
    (top / "run.sh").chmod(0o755)
    (top / "old.py").unlink()
    after = commit(top, {"new/b.py": "b\n", "odd \u00e9\n.py": "2\n"}, "change")
    said = git(top, "diff-tree", "-r", "-z", "--name-status", "--no-renames", repo.head, after).split("\0")
    pairs = sorted(zip(said[1::2], said[0::2], strict=False))
    assert [(one.path, one.status) for one in changed_paths(repo, repo.head, after)] == pairs
    assert {status for _, status in pairs} == {"A", "D", "M", "T"}
