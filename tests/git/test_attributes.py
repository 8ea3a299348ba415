"""Files that git writes in another encoding than UTF-8 keep what git itself would commit."""

from collections.abc import Callable
from pathlib import Path

import pytest
from testing.repositories import git, make_repository, write

from clean_room_agent.errors import RepositoryError
from clean_room_agent.git.commits import FILE, FileChange, Snapshot, commit_files, encodings_at, snapshot
from clean_room_agent.git.history import read_blob
from clean_room_agent.git.repository import Repository, list_work_tree, open_repository
from clean_room_agent.git.worktree import add_worktree, remove_worktree

UTF16 = "h\u00e9llo\n".encode("utf-16-le")
ATTRIBUTES = """[attr]japanese working-tree-encoding=SHIFT-JIS
*.txt text working-tree-encoding=UTF-16LE
*.sj japanese
*.u8 working-tree-encoding=utf8
win.txt working-tree-encoding=
"""


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    files = {
        ".gitattributes": ATTRIBUTES,
        "a.txt": UTF16,
        "sub/b.sj": "\u65e5\u672c\n".encode("shift-jis"),
        "c.u8": "h\u00e9\n",
        "win.txt": "plain\n",
        "d.py": "d = 0\n",
    }
    return open_repository(make_repository(tmp_path / "project", files))


def taken(repo: Repository) -> Snapshot:
    return snapshot(repo, "task", secrets=lambda _: False, max_untracked_bytes=1 << 20)


def test_git_is_asked_which_files_it_converts_also_of_those_that_do_not_exist(repo: Repository) -> None:
    paths = ("a.txt", "new.txt", "deep/down/new.sj", "c.u8", "win.txt", "d.py")
    assert encodings_at(repo, repo.head, paths) == {
        "a.txt": "UTF-16LE",
        "new.txt": "UTF-16LE",
        "deep/down/new.sj": "SHIFT-JIS",
    }


def in_info(repo: Repository, line: str) -> None:
    write(repo.git_dir, {"info/attributes": line})


def in_users_file(repo: Repository, line: str) -> None:
    write(repo.top.parent, {"mine": line})
    git(repo.top, "config", "core.attributesFile", str(repo.top.parent / "mine"))


def in_folder(repo: Repository, line: str) -> None:
    write(repo.top, {"deep/.gitattributes": line})
    git(repo.top, "add", "-A")
    git(repo.top, "commit", "-qm", "attributes")


@pytest.mark.parametrize("where", [in_info, in_users_file, in_folder])
def test_attributes_count_wherever_they_are(
    repo: Repository, where: Callable[[Repository, str], None]
) -> None:
    where(repo, "*.l1 working-tree-encoding=ISO-8859-1\n")
    repo = open_repository(repo.top)
    assert encodings_at(repo, repo.head, ["deep/x.l1"]) == {"deep/x.l1": "ISO-8859-1"}
    write(repo.top, {"deep/x.l1": "h\u00e9\n".encode("latin-1")})
    assert "deep/x.l1" in dict(list_work_tree(repo.top).encoded)


def test_a_snapshot_keeps_what_git_would_commit(repo: Repository, tmp_path: Path) -> None:
    changed = "h\u00e9 h\u00e9\n".encode("utf-16-le")
    write(repo.top, {"a.txt": changed, "new.txt": UTF16, "d.py": "d = 1\n"})
    found = taken(repo)
    assert found.encoded == ("a.txt", "new.txt", "sub/b.sj")
    assert (found.reshaped, found.excluded) == ((), ())
    assert read_blob(repo, found.commit, "a.txt") == "h\u00e9 h\u00e9\n".encode()
    assert read_blob(repo, found.commit, "new.txt") == "h\u00e9llo\n".encode()
    worktree = add_worktree(repo, found.commit, tmp_path / "tree", "task")
    assert (worktree.path / "a.txt").read_bytes() == changed
    remove_worktree(worktree)


@pytest.mark.parametrize("encoding", ["FOO-8", "UTF-16"])
def test_what_git_cannot_convert_is_left_as_committed(repo: Repository, encoding: str) -> None:
    in_info(repo, f"a.txt working-tree-encoding={encoding}\nnew.txt working-tree-encoding={encoding}\n")
    write(repo.top, {"a.txt": UTF16 * 2, "new.txt": UTF16, "more.txt": UTF16})
    found = taken(open_repository(repo.top))
    why = f"git cannot convert it from {encoding} (working-tree-encoding)"
    assert found.excluded == (("a.txt", why), ("new.txt", why))
    assert found.untracked == ("more.txt",)
    assert read_blob(repo, found.commit, "a.txt") == "h\u00e9llo\n".encode()


def test_an_attribute_without_an_encoding_is_explained(repo: Repository) -> None:
    in_info(repo, "d.py working-tree-encoding\n")
    with pytest.raises(RepositoryError, match=r"d\.py: its attribute working-tree-encoding is set") as caught:
        taken(open_repository(repo.top))
    assert "!working-tree-encoding" in caught.value.hint


def test_blobs_are_never_converted(repo: Repository) -> None:
    blob = "ol\u00e9\n".encode()
    changes = {name: FileChange(data=blob, mode=FILE) for name in ("a.txt", "new.txt", "d.py")}
    made = commit_files(repo, repo.head, changes, "message", None)
    assert [read_blob(repo, made, name) for name in changes] == [blob] * 3


def test_what_git_converts_is_not_listed_for_the_index(repo: Repository) -> None:
    listing = list_work_tree(repo.top)
    assert sorted(listing.paths) == [".gitattributes", "c.u8", "d.py", "win.txt"]
    assert dict(listing.encoded)["sub/b.sj"] == (
        "git converts it to SHIFT-JIS in a working tree (working-tree-encoding)"
    )
