import os
from collections.abc import Callable
from pathlib import Path

import pytest
from testing.repositories import AUTHOR, commit, fingerprint, git, init_repository, make_repository, write

from clean_room_agent.errors import GitError, RepositoryError
from clean_room_agent.git.command import git as hardened_git
from clean_room_agent.git.history import list_tree
from clean_room_agent.git.repository import (
    DEFAULT_AUTHOR,
    PendingListing,
    author_of,
    find_top,
    list_files,
    list_work_tree,
    open_repository,
    remote_url,
)


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
    assert PendingListing(top).take() == list_work_tree(top)
    with pytest.raises(RepositoryError, match="not a git repository"):
        PendingListing(tmp_path).take()


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
