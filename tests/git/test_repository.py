import os
from collections.abc import Callable
from pathlib import Path

import pytest
from testing.repositories import (
    AUTHOR,
    Files,
    commit,
    fingerprint,
    git,
    init_repository,
    make_repository,
    write,
)

from clean_room_agent.errors import GitError, RepositoryError
from clean_room_agent.git.command import InBackground
from clean_room_agent.git.command import git as hardened_git
from clean_room_agent.git.commits import (
    FILE,
    FileChange,
    Snapshot,
    commit_files,
    conversions_at,
    encodings_at,
    snapshot,
)
from clean_room_agent.git.history import list_tree, read_blob
from clean_room_agent.git.repository import (
    DEFAULT_AUTHOR,
    Repository,
    author_of,
    find_top,
    list_files,
    list_work_tree,
    open_repository,
    remote_url,
)
from clean_room_agent.git.worktree import add_worktree, remove_worktree


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", {"a.py": "a = 1\n", "pkg/b.py": "b = 1\n"})


def test_opening_tells_where_everything_stands(top: Path) -> None:
    before = fingerprint(top)
    repo = open_repository(top / "pkg")
    assert (repo.top, repo.git_dir, repo.common_dir) == (top, top / ".git", top / ".git")
    assert repo.head == git(top, "rev-parse", "HEAD")
    assert repo.named.hooks == ()
    assert fingerprint(top) == before


def test_a_linked_worktree_has_its_own_git_folder(top: Path, tmp_path: Path) -> None:
    git(top, "worktree", "add", "-q", str(tmp_path / "linked"))
    repo = open_repository(tmp_path / "linked")
    assert (repo.top, repo.git_dir) == (tmp_path / "linked", top / ".git/worktrees/linked")
    assert repo.common_dir == top / ".git"


def test_a_folder_name_may_hold_a_line_break(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "line\nbreak ", {"a.py": ""})
    assert open_repository(top).top == top
    assert find_top(top) == top


def test_a_folder_whose_name_is_not_utf8_is_refused(tmp_path: Path) -> None:
    top = make_repository(tmp_path / os.fsdecode(b"caf\xe9"), {"a.py": ""})
    with pytest.raises(RepositoryError, match="not UTF-8") as caught:
        find_top(top)
    assert "rename" in caught.value.hint
    with pytest.raises(RepositoryError, match="not UTF-8"):
        list_work_tree(top)


@pytest.mark.parametrize(
    ("damage", "said", "hint"),
    [
        (".git/index", "git ls-files .*index file", "rm .git/index && git reset"),
        (".git/objects/{tree}", "corrupt", "git fsck --full"),
    ],
)
def test_a_damaged_repository_is_an_error_with_the_remedy(
    top: Path, damage: str, said: str, hint: str
) -> None:
    name = git(top, "rev-parse", "HEAD^{tree}")
    head = git(top, "rev-parse", "HEAD")
    file = top / damage.format(tree=f"{name[:2]}/{name[2:]}")
    file.chmod(0o644)
    file.write_bytes(b"garbage, of which there is enough")
    with pytest.raises(GitError, match=r"(?s)" + said) as caught:
        list_tree(open_repository(top), head)
    assert hint in caught.value.hint


def test_a_folder_that_is_no_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="not a git repository") as caught:
        open_repository(tmp_path)
    assert "git init" in caught.value.hint
    with pytest.raises(RepositoryError, match="no folder"):
        list_work_tree(tmp_path / "missing")
    with pytest.raises(RepositoryError, match="is a file"):
        list_work_tree(Path(__file__))
    with pytest.raises(RepositoryError, match="no folder"):
        open_repository(tmp_path / "gone")


def test_a_bare_repository_is_refused(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    with pytest.raises(RepositoryError, match="bare") as caught:
        open_repository(tmp_path / "bare.git")
    assert "clone" in caught.value.hint


def test_the_git_folder_itself_is_refused(top: Path) -> None:
    with pytest.raises(RepositoryError, match="work tree"):
        open_repository(top / ".git")


def test_a_repository_without_a_commit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="no commit yet") as caught:
        open_repository(init_repository(tmp_path / "repo"))
    assert "git commit" in caught.value.hint


@pytest.fixture
def diverged(top: Path) -> Path:
    git(top, "checkout", "-q", "-b", "side")
    commit(top, {"a.py": "a = 2\n"}, "Side")
    git(top, "checkout", "-q", "main")
    commit(top, {"a.py": "a = 3\n"}, "Main")
    return top


@pytest.mark.parametrize(
    ("command", "name"), [("merge", "merge"), ("cherry-pick", "cherry-pick"), ("rebase", "rebase")]
)
def test_an_operation_in_progress_is_refused(diverged: Path, command: str, name: str) -> None:
    hardened_git(command, "side", cwd=diverged, ok=(0, 1))
    with pytest.raises(RepositoryError, match=f"a {name} .*in progress") as caught:
        open_repository(diverged)
    assert "--abort" in caught.value.hint


@pytest.mark.parametrize(
    ("command", "name", "remedy"),
    [
        ("format-patch -q -1 side && git am 0001-Side.patch", "git am", "git am --abort"),
        ("rebase --apply side", "rebase", "git rebase --abort"),
        (
            "cherry-pick side side~1; git checkout -q -f HEAD -- a.py; rm -f .git/CHERRY_PICK_HEAD",
            "cherry-pick or revert",
            "git cherry-pick --abort, or git revert --abort",
        ),
    ],
)
def test_what_is_in_progress_is_named_with_its_own_remedy(
    diverged: Path, command: str, name: str, remedy: str
) -> None:
    git(diverged, "-c", f"alias.try=!git {command} || true", "try")
    with pytest.raises(RepositoryError, match=f"a {name} is in progress") as caught:
        open_repository(diverged)
    assert remedy in caught.value.hint


def test_an_unmerged_index_is_refused(diverged: Path) -> None:
    hardened_git("merge", "side", cwd=diverged, ok=(0, 1))
    (diverged / ".git/MERGE_HEAD").unlink()
    with pytest.raises(RepositoryError, match=r"conflicts in a\.py"):
        open_repository(diverged)


def test_a_bisection_may_go_on(top: Path) -> None:
    git(top, "bisect", "start")
    assert open_repository(top).head


def test_listed_are_the_files_git_would_take(top: Path, tmp_path: Path) -> None:
    latin = os.fsdecode(b"caf\xe9.txt")
    make_repository(tmp_path / "library", {"lib.py": ""})
    git(top, "submodule", "-q", "add", str(tmp_path / "library"), "lib")
    make_repository(top / "vendored", {"x.py": ""})
    write(
        top,
        {
            ".gitignore": "*.log\n",
            "x.log": "",
            "new file.py": "",
            "line\nbreak": "",
            latin: "",
            "gone.py": "",
        },
    )
    git(top, "add", "gone.py")
    write(top, {"gone.py": None})
    (top / "link").symlink_to("a.py")
    os.mkfifo(top / "pipe")
    assert list_files(top) == tuple(
        sorted([".gitignore", ".gitmodules", "a.py", "line\nbreak", "new file.py", "pkg/b.py", latin])
    )


def test_the_author_is_the_users_or_an_announced_default(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert author_of(open_repository(top)) == AUTHOR
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")
    git(top, "config", "--unset", "user.email")
    assert author_of(open_repository(top)) == DEFAULT_AUTHOR


def test_a_listing_in_the_background_gives_the_same_or_the_same_error(top: Path, tmp_path: Path) -> None:
    write(top, {"new.py": ""})
    assert InBackground(lambda: list_work_tree(top)).take() == list_work_tree(top)
    with pytest.raises(RepositoryError, match="not a git repository"):
        InBackground(lambda: list_work_tree(tmp_path)).take()


@pytest.mark.parametrize("ask", [find_top, list_work_tree, open_repository])
@pytest.mark.parametrize(
    "name",
    [".gitignore", ".git/info/exclude", ".git/HEAD", ".git/config", ".git/index", ".git/commondir"],
)
def test_a_pipe_that_git_would_wait_for_is_named(top: Path, name: str, ask: Callable[[Path], object]) -> None:
    (top / name).unlink(missing_ok=True)
    os.mkfifo(top / name)
    (top / "inner").mkdir()
    with pytest.raises(RepositoryError, match="is a pipe") as caught:
        ask(top / "inner")
    assert caught.value.hint == f"remove it: rm {name}"


@pytest.mark.parametrize("key", ["user.name", "user.email"])
@pytest.mark.parametrize("value", ["<>", " ", "'\".,:;\\"])
def test_an_author_of_whom_git_would_leave_nothing_is_the_default(top: Path, key: str, value: str) -> None:
    git(top, "config", key, value)
    assert author_of(open_repository(top)) == DEFAULT_AUTHOR


def test_a_remote_that_is_no_address_is_not_told(top: Path) -> None:
    git(top, "config", "remote.origin.url", "http://[bad")
    assert remote_url(top) is None


@pytest.mark.parametrize(
    ("configured", "told"),
    [
        ("https://user:token@example.org/x.git", "https://example.org/x.git"),
        ("git@example.org:x.git", "git@example.org:x.git"),
        ("/srv/x.git", "/srv/x.git"),
    ],
)
def test_a_remote_is_told_without_its_password(top: Path, configured: str, told: str) -> None:
    assert remote_url(top) is None
    git(top, "remote", "add", "upstream", "https://example.org/other")
    git(top, "remote", "add", "origin", configured)
    assert remote_url(top) == told


def test_an_error_holds_gits_own_words(top: Path) -> None:
    with pytest.raises(GitError, match=r"git rev-parse \(exit 128\): fatal: Needed a single revision"):
        hardened_git("rev-parse", "--verify", "nothing", cwd=top)


UTF16 = "h\u00e9llo\n".encode("utf-16-le")
ATTRIBUTES = """[attr]japanese working-tree-encoding=SHIFT-JIS
*.txt text working-tree-encoding=UTF-16LE
*.sj japanese
*.u8 working-tree-encoding=utf8
win.txt working-tree-encoding=
"""


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    files: Files = {
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
    assert found.excluded == ()
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
    made = commit_files(repo, repo.head, changes, "message")
    assert [read_blob(repo, made, name) for name in changes] == [blob] * 3


def test_what_git_converts_is_not_listed_for_the_index(repo: Repository) -> None:
    listing = list_work_tree(repo.top)
    assert sorted(listing.paths) == [".gitattributes", "c.u8", "d.py", "win.txt"]
    assert dict(listing.encoded)["sub/b.sj"] == (
        "git converts it to SHIFT-JIS in a working tree (working-tree-encoding)"
    )


def test_a_file_of_a_filter_driver_is_not_edited_nor_one_by_attributes_that_git_ignores(
    repo: Repository,
) -> None:
    git(repo.top, "config", "filter.crypt.clean", "false")
    write(
        repo.top, {".git/info/exclude": "sub/.gitattributes\n", "sub/.gitattributes": "*.py filter=crypt\n"}
    )
    write(repo.top, {".git/info/attributes": "*.key filter=crypt\n*.md filter=unknown\n"})
    repo = open_repository(repo.top)
    paths = ("d.py", "new.key", "sub/new.py", "a.txt", "new.md")
    assert conversions_at(repo, repo.head, paths) == {
        "new.key": "filter driver 'crypt' does not run here",
        "sub/new.py": "filter driver 'crypt' does not run here",
        "a.txt": "git converts it to UTF-16LE in a working tree (working-tree-encoding)",
    }
