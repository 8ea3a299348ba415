import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from testing.repositories import fingerprint, git, make_repository, read_tree, write

from clean_room_agent.errors import GitError
from clean_room_agent.git.commits import Snapshot, snapshot
from clean_room_agent.git.generated import Generated
from clean_room_agent.git.repository import open_repository
from clean_room_agent.git.worktree import Worktree, add_worktree, remove_worktree

LATIN = os.fsdecode(b"caf\xe9.txt")


def no_secrets(_path: str) -> bool:
    return False


def take(top: Path, task: str = "t1", *, max_bytes: int = 1_000_000) -> Snapshot:
    """A snapshot, checked to have left everything of the user's alone."""
    before = fingerprint(top)
    taken = snapshot(open_repository(top), task, secrets=no_secrets, max_untracked_bytes=max_bytes)
    assert fingerprint(top) == before
    return taken


def check_out(top: Path, taken: Snapshot, where: Path) -> dict[str, bytes]:
    """The files of a work tree of the snapshot, by relative path."""
    add_worktree(open_repository(top), taken.commit, where, "t1")
    return {
        str(path.relative_to(where)): path.read_bytes()
        for path in sorted(where.rglob("*"))
        if path.is_file() and path.name != ".git"
    }


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", {"a.py": "a = 1\n", "b.py": "b = 1\n", "pkg/c.py": "c = 1\n"})


def test_a_clean_tree_is_head_itself(top: Path) -> None:
    taken = take(top)
    assert taken.commit == git(top, "rev-parse", "HEAD")
    assert (taken.dirty_tracked, taken.untracked, taken.excluded) == ((), (), ())
    assert git(top, "rev-parse", "refs/cra/t1/base") == taken.commit


def test_everything_the_user_sees_is_in_the_snapshot(top: Path) -> None:
    write(
        top,
        {
            "a.py": "a = 2\n",
            "b.py": None,
            "new.py": "n = 1\n",
            "staged.py": "s = 1\n",
            "sp ace/x\ny.txt": "!",
        },
    )
    write(top, {".gitignore": "*.log\n", "debug.log": "noise"})
    git(top, "add", "staged.py")
    (top / "pkg/c.py").chmod(0o755)
    (top / "link").symlink_to("pkg/c.py")
    (top / LATIN).write_bytes(b"caf\xe9\n")
    git(top, "stash", "list")
    taken = take(top)
    assert read_tree(top, taken.commit) == {
        ".gitignore": b"*.log\n",
        "a.py": b"a = 2\n",
        "pkg/c.py": b"c = 1\n",
        "new.py": b"n = 1\n",
        "staged.py": b"s = 1\n",
        "sp ace/x\ny.txt": b"!",
        "link": b"pkg/c.py",
        LATIN: b"caf\xe9\n",
    }
    assert taken.dirty_tracked == ("a.py", "b.py", "pkg/c.py", "staged.py")
    assert set(taken.untracked) == {".gitignore", "new.py", "sp ace/x\ny.txt", "link", LATIN}
    assert git(top, "rev-parse", f"{taken.commit}^") == git(top, "rev-parse", "HEAD")
    modes = dict(
        line.split("\t")[::-1] for line in git(top, "ls-tree", taken.commit, "pkg/c.py", "link").splitlines()
    )
    assert modes["pkg/c.py"].startswith("100755")
    assert modes["link"].startswith("120000")


def test_the_same_tree_gives_the_same_commit_for_every_task(top: Path) -> None:
    write(top, {"a.py": "a = 2\n"})
    assert take(top, "t1").commit == take(top, "t2").commit


def test_a_task_has_one_snapshot_only(top: Path) -> None:
    take(top)
    write(top, {"a.py": "a = 2\n"})
    with pytest.raises(GitError):
        take(top)


def test_disk_wins_over_index(top: Path) -> None:
    write(top, {"a.py": "staged\n"})
    git(top, "add", "a.py")
    write(top, {"a.py": "on disk\n"})
    git(top, "rm", "-q", "--cached", "b.py")
    taken = take(top)
    assert read_tree(top, taken.commit)["a.py"] == b"on disk\n"
    assert read_tree(top, taken.commit)["b.py"] == b"b = 1\n"
    assert taken.dirty_tracked == ("a.py",)


def test_a_file_may_become_a_folder_or_a_link_and_back(top: Path) -> None:
    write(top, {"a.py": None, "a.py/inner.py": "i = 1\n", "pkg/c.py": None, "b.py": None})
    (top / "pkg").rmdir()
    (top / "pkg").write_text("now a file")
    (top / "b.py").symlink_to("a.py/inner.py")
    taken = take(top)
    assert read_tree(top, taken.commit) == {
        "a.py/inner.py": b"i = 1\n",
        "pkg": b"now a file",
        "b.py": b"a.py/inner.py",
    }


@pytest.mark.parametrize("target", ["/etc/hostname", "elsewhere"])
def test_a_folder_may_become_a_link(top: Path, target: str) -> None:
    write(top, {"pkg/c.py": None, "elsewhere/c.py": "not ours to follow\n"})
    (top / "pkg").rmdir()
    (top / "pkg").symlink_to(target)
    taken = take(top)
    assert read_tree(top, taken.commit) == {
        "a.py": b"a = 1\n",
        "b.py": b"b = 1\n",
        "elsewhere/c.py": b"not ours to follow\n",
        "pkg": target.encode(),
    }


def test_intent_to_add_entries_are_files_like_others(top: Path) -> None:
    write(top, {"later.py": "x = 1\n", "gone.py": ""})
    git(top, "add", "-N", "later.py", "gone.py")
    write(top, {"gone.py": None})
    assert read_tree(top, take(top).commit).keys() == {"a.py", "b.py", "pkg/c.py", "later.py"}


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_hidden_changes_are_what_the_user_sees(top: Path, flag: str) -> None:
    git(top, "update-index", flag, "a.py")
    write(top, {"a.py": "hidden = 1\n"})
    assert read_tree(top, take(top).commit)["a.py"] == b"hidden = 1\n"


def test_a_change_within_the_second_of_the_index_is_seen(top: Path) -> None:
    write(top, {"a.py": "x = 1\n"})
    git(top, "add", "a.py")
    write(top, {"a.py": "y = 1\n"})
    assert read_tree(top, take(top).commit)["a.py"] == b"y = 1\n"


def test_what_is_left_out_is_named_with_its_reason(top: Path) -> None:
    write(top, {"big.bin": b"\0" * 2000, ".env.local": "KEY=1", "ok.txt": "fine"})
    make_repository(top / "vendored", {"x.py": ""})
    os.mkfifo(top / "pipe")
    before = fingerprint(top)
    taken = snapshot(
        open_repository(top), "t1", secrets=lambda path: path.startswith(".env"), max_untracked_bytes=1000
    )
    assert fingerprint(top) == before
    assert taken.untracked == ("ok.txt",)
    assert dict(taken.excluded) == {
        ".env.local": "its name looks like a secret",
        "big.bin": "2000 bytes are more than the limit of 1000",
        "vendored/": "another git repository",
    }


def test_a_tracked_file_replaced_by_a_pipe_does_not_block(top: Path) -> None:
    write(top, {"a.py": None})
    os.mkfifo(top / "a.py")
    taken = take(top)
    assert ("a.py", "neither a file nor a link") in taken.excluded


@pytest.fixture
def with_submodule(tmp_path: Path, top: Path) -> Path:
    make_repository(tmp_path / "library", {"lib.py": "x = 1\n"})
    git(top, "submodule", "-q", "add", str(tmp_path / "library"), "lib")
    git(top, "commit", "-q", "-m", "Add library")
    return top


def test_a_clean_submodule_is_left_as_recorded(with_submodule: Path, tmp_path: Path) -> None:
    taken = take(with_submodule)
    assert taken.commit == git(with_submodule, "rev-parse", "HEAD")
    assert taken.excluded == ()
    assert "lib/lib.py" not in check_out(with_submodule, taken, tmp_path / "wt")


def test_a_dirty_submodule_is_announced_and_left_as_recorded(with_submodule: Path) -> None:
    write(with_submodule, {"lib/lib.py": "x = 2\n"})
    taken = take(with_submodule)
    assert taken.excluded == (("lib", "a submodule with uncommitted changes: left as recorded"),)
    assert taken.commit == git(with_submodule, "rev-parse", "HEAD")
    write(with_submodule / "lib", {"lib.py": "x = 3\n"})
    git(with_submodule / "lib", "-c", "user.name=a", "-c", "user.email=b", "commit", "-qam", "New")
    assert take(with_submodule, "t2").excluded == (
        ("lib", "a submodule at another commit: left as recorded"),
    )


LINE_END_CASES = (
    ("autocrlf=true", "", {"a.txt": b"one\r\ntwo\r\n", "new.txt": b"x\r\n"}),
    ("autocrlf=input", "", {"a.txt": b"one\ntwo\n"}),
    ("autocrlf=false", "* text=auto eol=crlf\n", {"a.txt": b"one\r\ntwo\r\n", "new.txt": b"x\r\n"}),
    ("autocrlf=false", "", {"a.txt": b"one\r\nmixed\n", "new.txt": b"x\r\n"}),
    ("autocrlf=true", "*.txt -text\n", {"a.txt": b"one\r\nmixed\n"}),
)


@pytest.mark.parametrize(("setting", "attributes", "files"), LINE_END_CASES)
def test_line_ends_in_the_worktree_are_the_users(
    tmp_path: Path, setting: str, attributes: str, files: dict[str, bytes]
) -> None:
    top = make_repository(tmp_path / "repo", {".gitattributes": attributes, "a.txt": "one\n"})
    git(top, "config", *("core." + setting).split("="))
    write(top, files)
    taken = take(top)
    assert check_out(top, taken, tmp_path / "wt").items() >= files.items()


def test_filter_drivers_never_run_and_their_files_are_left_out(tmp_path: Path) -> None:
    top = make_repository(
        tmp_path / "repo",
        {".gitattributes": "*.bin filter=lock\n*.txt filter=a=b\n", "x.bin": "pointer", "y.py": ""},
    )
    marker = tmp_path / "ran"
    for name in ("lock", "a=b"):
        for kind in ("clean", "smudge", "process"):
            git(top, "config", f"filter.{name}.{kind}", f"touch '{marker}'; cat")
        git(top, "config", f"filter.{name}.required", "true")
    write(top, {"x.bin": "real content", "new.bin": "real", "z.txt": "t", "y.py": "y = 1\n"})
    taken = take(top)
    assert dict(taken.excluded) == {
        "x.bin": "filter driver 'lock' does not run here",
        "new.bin": "filter driver 'lock' does not run here",
        "z.txt": "filter driver 'a=b' does not run here",
    }
    assert taken.dirty_tracked == ("y.py",)
    assert taken.converted == ("x.bin",)
    assert set(taken.unlike_the_tree()) == {"x.bin", "new.bin", "z.txt"}
    assert check_out(top, taken, tmp_path / "wt")["x.bin"] == b"pointer"
    of_machine = open_repository(make_repository(tmp_path / "plain", {"a.py": ""})).named.filters
    assert open_repository(top).named.filters == tuple(sorted({*of_machine, "a=b", "lock"}))
    assert not marker.exists()


def test_a_filter_without_a_name_is_kept_from_running_too(top: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    with (top / ".git/config").open("a") as file:
        file.write(f'[filter ""]\n\tclean = touch {marker}; cat\n\tsmudge = touch {marker}; cat\n')
    write(top, {".gitattributes": "*.bin filter=\n", "x.bin": "content", "a.py": "a = 3\n"})
    taken = take(top)
    assert dict(taken.excluded) == {"x.bin": "filter driver '' does not run here"}
    assert "a.py" in taken.dirty_tracked
    assert not marker.exists()


def test_no_hook_and_no_fsmonitor_runs(top: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    script = f"#!/bin/sh\necho $0 >> '{marker}'\n"
    for hook in ("post-checkout", "pre-commit", "post-commit", "reference-transaction", "post-index-change"):
        write(top, {f".git/hooks/{hook}": script})
        (top / ".git/hooks" / hook).chmod(0o755)
    write(top, {"../monitor": script, "a.py": "a = 3\n"})
    (tmp_path / "monitor").chmod(0o755)
    git(top, "config", "core.fsmonitor", str(tmp_path / "monitor"))
    marker.unlink(missing_ok=True)
    taken = snapshot(open_repository(top), "t1", secrets=no_secrets, max_untracked_bytes=1000)
    remove_worktree(add_worktree(open_repository(top), taken.commit, tmp_path / "wt", "t1"))
    assert not marker.exists()


@pytest.mark.parametrize("cone", [True, False])
def test_a_sparse_checkout_keeps_what_it_does_not_show(top: Path, tmp_path: Path, cone: bool) -> None:
    git(top, "update-index", "--refresh")  # files that may have changed stay
    if cone:
        git(top, "sparse-checkout", "set", "--cone", "--sparse-index", "other")
    else:
        git(top, "sparse-checkout", "set", "--no-cone", "/*.py")
    assert not (top / "pkg/c.py").exists()
    write(top, {"a.py": "a = 2\n", "new.py": ""})
    taken = take(top)
    assert taken.dirty_tracked == ("a.py",)
    assert taken.absent == ("pkg/c.py",)
    before = fingerprint(top)
    assert check_out(top, taken, tmp_path / "wt").keys() == {"a.py", "b.py", "new.py", "pkg/c.py"}
    assert fingerprint(top) == before


def test_a_split_index_is_read_and_not_written(top: Path) -> None:
    git(top, "update-index", "--split-index")
    write(top, {"a.py": "a = 2\n"})
    git(top, "add", "a.py")
    write(top, {"b.py": "b = 2\n"})
    taken = take(top)
    assert taken.dirty_tracked == ("a.py", "b.py")


def test_the_users_own_linked_worktree_works(top: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(top, "worktree", "add", "-q", "-b", "side", str(linked))
    write(linked, {"a.py": "a = 9\n"})
    before = fingerprint(top)
    taken = take(linked)
    assert read_tree(linked, taken.commit)["a.py"] == b"a = 9\n"
    assert check_out(linked, taken, tmp_path / "wt")["a.py"] == b"a = 9\n"
    assert fingerprint(top) == before


def test_a_detached_head_works(top: Path) -> None:
    git(top, "checkout", "-q", "--detach")
    write(top, {"a.py": "a = 2\n"})
    assert take(top).dirty_tracked == ("a.py",)


def test_a_held_index_lock_does_not_matter(top: Path) -> None:
    (top / ".git/index.lock").write_bytes(b"")
    write(top, {"a.py": "a = 2\n"})
    assert take(top).dirty_tracked == ("a.py",)


def test_a_missing_index_is_not_a_tree_of_deletions(top: Path) -> None:
    (top / ".git/index").unlink()
    write(top, {"a.py": "a = 2\n"})
    assert take(top).dirty_tracked == ("a.py",)


def test_without_an_identity_the_snapshot_still_is_made(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")
    git(top, "config", "--unset", "user.name")
    write(top, {"a.py": "a = 2\n"})
    taken = take(top)
    assert git(top, "show", "-s", "--format=%an <%ae> %cn", taken.commit).startswith(
        "cra <cra@localhost> cra"
    )


def test_git_variables_of_the_caller_do_not_reach_git(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repository(tmp_path / "other", {"o.py": ""})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "elsewhere"))
    write(top, {"a.py": "a = 2\n"})
    assert take(top).dirty_tracked == ("a.py",)
    assert open_repository(top).git_dir == top / ".git"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_untracked_file_that_cannot_be_read_is_left_out(top: Path) -> None:
    write(top, {"closed": "x"})
    (top / "closed").chmod(0)
    taken = snapshot(open_repository(top), "t1", secrets=no_secrets, max_untracked_bytes=1000)
    assert taken.excluded == (("closed", "cannot be read"),)


def test_twenty_runs_at_once_do_not_disturb_one_another(top: Path, tmp_path: Path) -> None:
    write(top, {"a.py": "a = 2\n", "new.py": "n"})
    before = fingerprint(top)

    def run_one(number: int) -> Worktree:
        repo = open_repository(top)
        taken = snapshot(repo, f"t{number}", secrets=no_secrets, max_untracked_bytes=1000)
        return add_worktree(repo, taken.commit, tmp_path / "trees" / f"t{number}" / "repo", f"t{number}")

    with ThreadPoolExecutor(20) as pool:
        trees = list(pool.map(run_one, range(20)))
    assert {(tree.path / "a.py").read_text() for tree in trees} == {"a = 2\n"}
    assert len({tree.git_dir for tree in trees}) == 20
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(remove_worktree, trees))
    assert fingerprint(top) == before
    assert not (top / ".git/worktrees").exists()
    shutil.rmtree(tmp_path / "trees")


def test_generated_folders_are_left_out_and_the_rest_is_exact(top: Path, tmp_path: Path) -> None:
    write(
        top,
        {
            "env/pyvenv.cfg": "home = /usr\n",
            "env/lib/six.py": "x = 1\n",
            "pkg/__pycache__/c.py": "c = 2\n",
            "new/source.py": "n = 1\n",
            "target/main.py": "t = 1\n",
        },
    )
    taken = take(top)
    assert taken.generated == (
        Generated("env", "a Python environment"),
        Generated("pkg/__pycache__", "compiled Python"),
    )
    assert (taken.dirty_tracked, taken.excluded) == ((), ())
    assert taken.untracked == ("new/source.py", "target/main.py")
    assert set(check_out(top, taken, tmp_path / "w")) == {
        *("a.py", "b.py", "pkg/c.py", "new/source.py", "target/main.py")
    }


def test_a_tree_with_generated_folders_alone_is_clean(top: Path) -> None:
    write(top, {"node_modules/left/index.js": "x\n"})
    assert take(top).commit == git(top, "rev-parse", "HEAD")


def test_what_is_tracked_of_a_generated_folder_stays(top: Path) -> None:
    write(top, {"env/pyvenv.cfg": "home = /usr\n", "env/lib/six.py": "x = 1\n"})
    git(top, "add", "env/lib/six.py")
    git(top, "commit", "-qm", "an environment")
    write(top, {"env/lib/six.py": "x = 2\n"})
    taken = take(top)
    assert (taken.generated, taken.dirty_tracked) == ((), ("env/lib/six.py",))
    assert read_tree(top, taken.commit)["env/lib/six.py"] == b"x = 2\n"
