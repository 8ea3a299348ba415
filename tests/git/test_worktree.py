import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from testing.repositories import commit, fingerprint, git, make_repository, write

from clean_room_agent.errors import GitError
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.git.worktree import (
    ParentCheckout,
    Worktree,
    add_worktree,
    bare_configuration,
    remove_worktree,
    reset_worktree,
    shown_folders,
    stand_on,
    tasks_of_worktrees,
    written_files,
)

FILES = {"a.py": "a = 1\n", "pkg/b.py": "b = 1\n", ".gitignore": "*.log\nnode_modules\n.venv\n"}


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return open_repository(make_repository(tmp_path / "repo", FILES))


@pytest.fixture
def tree(repo: Repository, tmp_path: Path) -> Worktree:
    return add_worktree(repo, repo.head, tmp_path / "cache/task", "t1")


def contents(tree: Worktree) -> dict[str, bytes]:
    found = (path for path in sorted(tree.path.rglob("*")) if path.is_file() and path != tree.path / ".git")
    return {str(path.relative_to(tree.path)): path.read_bytes() for path in found}


def reset(tree: Worktree, *keep: str) -> None:
    reset_worktree(tree, tree.repo.head, keep=keep)
    assert contents(tree).items() >= {name: text.encode() for name, text in FILES.items()}.items()
    assert git(tree.path, "status", "--porcelain") == ""
    assert git(tree.path, "rev-parse", "HEAD") == tree.repo.head


def test_a_worktree_is_detached_locked_and_changes_nothing_of_the_users(
    repo: Repository, tmp_path: Path
) -> None:
    before = fingerprint(repo.top)
    tree = add_worktree(repo, repo.head, tmp_path / "cache/task", "t1")
    listed = git(repo.top, "worktree", "list", "--porcelain")
    assert f"worktree {tree.path}\nHEAD {repo.head}\ndetached\nlocked cra t1" in listed
    assert tree.git_dir == repo.common_dir / "worktrees/task"
    assert fingerprint(repo.top) == before
    remove_worktree(tree)
    assert fingerprint(repo.top) == before
    assert not tree.path.exists()
    assert "task" not in git(repo.top, "worktree", "list", "--porcelain")


def test_a_worktree_that_cannot_be_made_is_an_error_in_gits_words(repo: Repository, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/file").write_text("")
    with pytest.raises(GitError, match="already exists"):
        add_worktree(repo, repo.head, tmp_path / "taken", "t1")
    with pytest.raises(GitError, match="invalid reference"):
        add_worktree(repo, "0" * 39 + "1", tmp_path / "wt", "t1")
    assert not (tmp_path / "wt").exists()


def test_reset_undoes_edits_additions_deletions_and_commits(tree: Worktree) -> None:
    write(tree.path, {"a.py": "broken\n", "pkg/b.py": None, "new/x.py": "", "x.log": ""})
    git(tree.path, "add", "-A")
    git(tree.path, "commit", "-q", "-m", "By a test")
    (tree.path / "a.py").chmod(0o755)
    make_repository(tree.path / "nested", {"n.py": ""})
    (tree.path / "empty").mkdir()
    reset(tree)
    assert contents(tree).keys() == FILES.keys()
    assert not (tree.path / "empty").exists()
    assert not os.access(tree.path / "a.py", os.X_OK)


def test_reset_keeps_what_it_is_told_to(tree: Worktree, tmp_path: Path) -> None:
    write(tmp_path / "modules", {"m.js": ""})
    (tree.path / "node_modules").symlink_to(tmp_path / "modules")
    write(
        tree.path,
        {".venv/lib/v.py": "", "web/node_modules/w.js": "", "we[b]/node_modules/w.js": "", "x.log": ""},
    )
    reset(tree, "node_modules", ".venv/", "we[b]/node_modules")
    assert (tree.path / "node_modules/m.js").exists()
    assert (tree.path / ".venv/lib/v.py").exists()
    assert (tree.path / "we[b]/node_modules/w.js").exists()
    assert not (tree.path / "web").exists()
    assert not (tree.path / "x.log").exists()
    remove_worktree(tree)
    assert (tmp_path / "modules/m.js").exists()


def test_a_swapped_git_file_never_runs_anything(tree: Worktree, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    link = tree.path / ".git"
    link.unlink()
    git(tree.path, "init", "-q")
    git(tree.path, "config", "core.fsmonitor", f"touch {marker}")
    git(tree.path, "config", "filter.evil.smudge", f"touch {marker}; cat")
    write(tree.path, {".gitattributes": "* filter=evil\n", "a.py": "x\n"})
    reset(tree)
    assert link.read_text() == f"gitdir: {tree.git_dir}\n"
    link.unlink()
    reset(tree)
    link.unlink()
    link.symlink_to(tmp_path / "elsewhere")
    reset(tree)
    assert not marker.exists()
    assert not (tmp_path / "elsewhere").exists()


def test_nothing_is_left_of_a_work_tree_whose_objects_are_damaged(repo: Repository, tmp_path: Path) -> None:
    tree = git(repo.top, "rev-parse", "HEAD^{tree}")
    damaged = repo.common_dir / "objects" / tree[:2] / tree[2:]
    damaged.chmod(0o644)
    damaged.write_bytes(b"garbage")
    with pytest.raises(GitError):
        add_worktree(repo, repo.head, tmp_path / "wt", "t1")
    assert not (tmp_path / "wt").exists()
    assert not (repo.common_dir / "worktrees").exists()


def test_reset_mends_a_lock_a_broken_index_and_closed_folders(tree: Worktree) -> None:
    (tree.git_dir / "index.lock").write_bytes(b"")
    reset(tree)
    (tree.git_dir / "index").write_bytes(b"garbage")
    reset(tree)
    (tree.git_dir / "index").unlink()
    write(tree.git_dir, {"index/of/folders": "", "index.lock/x": ""})
    write(tree.path, {"a.py": "x\n", "junk/deep/x.py": ""})
    (tree.path / "junk/deep").chmod(0)
    (tree.path / "junk").chmod(0o500)
    (tree.path / "pkg").chmod(0o500)
    reset(tree)
    assert contents(tree).keys() == FILES.keys()


def test_a_change_with_its_old_time_and_size_is_undone(tree: Worktree) -> None:
    file = tree.path / "a.py"
    before, times = file.read_text(), file.stat()
    file.write_text("a = 9\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    reset(tree)
    assert file.read_text() == before


@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged", "--fsmonitor-valid"])
def test_a_flag_in_the_index_hides_nothing_from_a_reset(tree: Worktree, flag: str) -> None:
    git(tree.path, "update-index", flag, "a.py")
    write(tree.path, {"a.py": "tampered\n"})
    reset(tree)
    write(tree.path, {"a.py": "tampered\n"})
    git(tree.path, "update-index", flag, "a.py", "pkg/b.py")
    git(tree.path, "status")
    reset(tree)
    assert contents(tree).keys() == FILES.keys()


def test_submodule_folders_are_emptied_but_not_through_links(tmp_path: Path) -> None:
    make_repository(tmp_path / "library", {"lib.py": ""})
    top = make_repository(tmp_path / "repo", FILES)
    git(top, "submodule", "-q", "add", str(tmp_path / "library"), "deep/lib")
    git(top, "commit", "-q", "-m", "Add library")
    repo = open_repository(top)
    tree = add_worktree(repo, repo.head, tmp_path / "wt", "t1")
    write(tree.path, {"deep/lib/left.py": "", "deep/lib/x/y": ""})
    reset(tree)
    assert list((tree.path / "deep/lib").iterdir()) == []
    write(tmp_path / "users", {"lib/precious": ""})
    shutil.rmtree(tree.path / "deep")
    (tree.path / "deep").symlink_to(tmp_path / "users")
    reset_worktree(tree, repo.head)
    assert (tmp_path / "users/lib/precious").exists()


def plant_filter(top: Path, title: str, canary: Path) -> None:
    """A filter driver that leaves a trace, in a file that the configuration includes under a condition."""
    write(top, {".gitattributes": "*.py filter=trap\n"})
    git(top, "add", ".gitattributes")
    git(top, "commit", "-q", "-m", "Attributes")
    included = top.parent / "included"
    program = f"touch {canary}; cat"
    included.write_text(
        "".join(f'[filter "trap"]\n\t{key} = {program}\n' for key in ("smudge", "clean"))
        + f'[hook "trap"]\n\tevent = post-checkout\n\tevent = reference-transaction\n\tcommand = touch {canary}\n'
    )
    with (top / ".git/config").open("a") as file:
        file.write(f"[{title}]\n\tpath = {included}\n")


@pytest.mark.parametrize(
    "title",
    [
        "include",
        'includeIf "gitdir:**/worktrees/*"',
        'includeIf "gitdir:**/worktrees/**"',
        'includeIf "gitdir/i:**/WORKTREES/*"',
        'includeIf "gitdir:task/"',
        'includeIf "hasconfig:remote.*.url:https://**"',
        'includeIf "onbranch:**"',
    ],
)
def test_a_filter_that_git_knows_in_the_work_tree_alone_is_not_run(tmp_path: Path, title: str) -> None:
    top = make_repository(tmp_path / "repo", FILES)
    git(top, "remote", "add", "origin", "https://example.org/x")
    canary = tmp_path / "canary"
    plant_filter(top, title, canary)
    canary.unlink(missing_ok=True)
    repo = open_repository(top)
    tree = add_worktree(repo, repo.head, tmp_path / "cache/task", "t1")
    assert contents(tree).items() >= {name: text.encode() for name, text in FILES.items()}.items()
    write(tree.path, {"a.py": "a = 2\n"})
    reset_worktree(tree, repo.head)
    stand_on(tree, repo.head)
    remove_worktree(tree)
    assert not canary.exists()


def test_a_filter_of_the_work_trees_own_configuration_is_not_run(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", FILES)
    canary = tmp_path / "canary"
    write(top, {".gitattributes": "*.py filter=trap\n"})
    git(top, "add", ".gitattributes")
    git(top, "commit", "-q", "-m", "Attributes")
    git(top, "config", "extensions.worktreeConfig", "true")
    git(top, "config", "--worktree", "filter.trap.smudge", f"touch {canary}; cat")
    repo = open_repository(top)
    reset_worktree(add_worktree(repo, repo.head, tmp_path / "cache/task", "t1"), repo.head)
    assert not canary.exists()


def test_removal_works_on_a_wrecked_worktree(tree: Worktree) -> None:
    before = fingerprint(tree.repo.top)
    (tree.path / ".git").unlink()
    (tree.path / ".git").mkdir()
    (tree.path / "pkg").chmod(0)
    remove_worktree(tree)
    remove_worktree(tree)
    assert fingerprint(tree.repo.top) == before
    assert not tree.path.exists()
    assert not tree.git_dir.exists()


@pytest.mark.parametrize("line", ["text eol=crlf", "working-tree-encoding=UTF-16", "ident"])
def test_an_attributes_file_that_a_test_left_steers_no_reset(tree: Worktree, line: str) -> None:
    for number in range(2):
        write(tree.path, {"pkg/.gitattributes": f"b.py {line}\n", "pkg/b.py": f"# $Id$ {number}\n"})
        reset(tree)
        assert (tree.path / "pkg/b.py").read_bytes() == b"b = 1\n"


@pytest.mark.parametrize("place", ["pkg/.git", "pkg/.git/deep", ".GIT", "new/.git"])
def test_a_folder_with_gits_name_is_no_place_to_hide(tree: Worktree, place: str) -> None:
    write(tree.path, {f"{place}/calc.py": "x = 1\n", f"{place}/HEAD": "ref: refs/heads/main\n"})
    reset(tree)
    assert [str(path.relative_to(tree.path)) for path in tree.path.rglob("calc.py")] == []


def dig(folder: Path, depth: int, name: str = "a") -> None:
    """Folders in folders, deeper than a path can name."""
    before = Path.cwd()
    os.chdir(folder)
    for _ in range(depth):
        os.mkdir(name)  # noqa: PTH102 - relative to where we are
        os.chdir(name)
    Path("file").write_text("x")
    os.chdir(before)


@pytest.mark.parametrize(("depth", "name"), [(1100, "a"), (60, "a" * 200)])
def test_folders_of_any_depth_go_with_a_reset_and_with_the_work_tree(
    tree: Worktree, depth: int, name: str
) -> None:
    dig(tree.path / "pkg", depth, name)
    reset(tree)
    assert [path.name for path in (tree.path / "pkg").iterdir()] == ["b.py"]
    (tree.path / ".git").unlink()
    (tree.path / ".git").mkdir()
    dig(tree.path / ".git", depth, name)
    remove_worktree(tree)
    assert not tree.path.exists()


def test_work_trees_tell_their_tasks(tree: Worktree, tmp_path: Path) -> None:
    assert tasks_of_worktrees(tree.repo, tree.path.parent) == ("t1",)
    git(tree.repo.top, "worktree", "add", "-q", "--detach", str(tree.path.parent / "users"))
    assert tasks_of_worktrees(tree.repo, tree.path.parent) == ("t1",)
    assert tasks_of_worktrees(tree.repo, tmp_path) == ()


def leave_a_mode(folder: Path) -> None:
    folder.chmod(0o711)


def leave_an_attribute(folder: Path) -> None:
    try:
        os.setxattr(folder, "user.flag", b"1")
    except OSError:
        pytest.skip("the file system has no attributes of users")


def leave_a_time(folder: Path) -> None:
    os.utime(folder, ns=(1, 1))


@pytest.mark.skipif(sys.platform != "linux", reason="attributes of users")
@pytest.mark.parametrize("leave", [leave_a_mode, leave_an_attribute, leave_a_time])
@pytest.mark.parametrize("place", ["", "pkg"])
def test_a_folder_carries_nothing_over_a_reset(
    tree: Worktree, place: str, leave: Callable[[Path], None]
) -> None:
    reset(tree)
    folder = tree.path / place
    before = stat.S_IMODE(folder.stat().st_mode)
    for _ in range(2):
        leave(folder)
        reset(tree)
        assert stat.S_IMODE(folder.stat().st_mode) == before
        assert [name for name in os.listxattr(folder) if name.startswith("user.")] == []
        assert folder.stat().st_mtime_ns != 1 or not place


def test_a_reset_without_a_change_makes_no_folder_anew(tree: Worktree) -> None:
    reset(tree)
    before = (tree.path / "pkg").stat().st_ino, (tree.path / "pkg/b.py").stat().st_ino
    write(tree.path, {"new.txt": "", "a.py": "changed"})
    reset(tree)
    assert ((tree.path / "pkg").stat().st_ino, (tree.path / "pkg/b.py").stat().st_ino) == before


def test_commits_are_shown_without_writing_to_their_repository(repo: Repository, tmp_path: Path) -> None:
    second = commit(repo.top, {"a.py": "new\n", "pkg/b.py": None}, "Change")
    before = git(repo.top, "worktree", "list")
    shown = ParentCheckout(repo.git_dir, tmp_path / "shown")
    shown.show(second)
    assert (shown.root / "a.py").read_text() == "new\n"
    assert not (shown.root / "pkg/b.py").exists()
    shown.show(repo.head)
    assert (shown.root / "a.py").read_text() == "a = 1\n"
    assert (shown.root / "pkg/b.py").exists()
    assert git(repo.top, "worktree", "list") == before


def test_a_commit_with_our_own_folder_is_not_checked_out(repo: Repository, tmp_path: Path) -> None:
    bad = commit(repo.top, {".clean_room/config.toml": "x"}, "Mine")
    with pytest.raises(GitError, match="belongs to this program"):
        ParentCheckout(repo.git_dir, tmp_path / "shown").show(bad)


def test_no_remote_helper_or_password_is_shown(repo: Repository) -> None:
    git(repo.top, "remote", "add", "origin", "https://user:password@example.org/x")
    git(repo.top, "config", "credential.helper", "!steal")
    told = bare_configuration(repo).decode()
    assert "repositoryformatversion = 0" in told
    assert not {"password", "steal", "remote"} & set(told.replace("/", " ").split())
    assert "example.org" not in told


def test_refs_are_shown_as_names_and_objects_as_they_are(repo: Repository) -> None:
    files = written_files(repo)
    assert f"{repo.head} refs/heads/main" in files["packed-refs"].decode()
    assert "shallow" not in files
    assert shown_folders(repo) == {"objects": repo.common_dir / "objects"}


def test_objects_that_are_a_link_are_not_shown(repo: Repository) -> None:
    objects = repo.common_dir / "objects"
    objects.rename(repo.top / "kept")
    objects.symlink_to(repo.top / "kept")
    assert shown_folders(repo) == {}
