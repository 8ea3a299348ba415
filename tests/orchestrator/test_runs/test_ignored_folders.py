import os
import shutil
from pathlib import Path

import pytest
from testing.patience import PATIENCE
from testing.repositories import write

from clean_room_agent.errors import RepositoryError
from clean_room_agent.orchestrator.run_config import FolderMode
from clean_room_agent.orchestrator.test_runs.command_runner import run_tests
from clean_room_agent.orchestrator.test_runs.ignored_folders import Copies, copy_included, prepare_links


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    user, worktree = tmp_path / "user", tmp_path / "w1"
    (user / "node_modules" / "dep").mkdir(parents=True)
    (user / "node_modules" / "dep" / "index.js").write_text("module.exports = 'dep'\n")
    (user / "node_modules" / ".bin").mkdir()
    (user / "node_modules" / ".bin" / "dep").symlink_to("../dep/index.js")
    (user / "node_modules" / "own").symlink_to("../packages/own")
    worktree.mkdir()
    return user, worktree


def test_a_copy_is_the_worktree_s_own(trees: tuple[Path, Path]) -> None:
    user, worktree = trees
    assert prepare_links(worktree, user, ("node_modules", "venv"), how="copy") == ("node_modules: copied",)
    (worktree / "node_modules" / "dep" / "index.js").write_text("changed")
    assert (user / "node_modules" / "dep" / "index.js").read_text() == "module.exports = 'dep'\n"
    assert (worktree / "node_modules" / ".bin" / "dep").readlink() == Path("../dep/index.js")
    assert (worktree / "node_modules" / "own").readlink() == Path("../packages/own"), (
        "workspace packages follow"
    )


def test_a_link_is_announced_each_time_it_is_made(trees: tuple[Path, Path]) -> None:
    user, worktree = trees
    said = ("node_modules: linked to yours; tests can change it",)
    assert prepare_links(worktree, user, ("node_modules",), how="link") == said
    assert prepare_links(worktree, user, ("node_modules",), how="link") == ()
    (worktree / "node_modules").unlink()
    assert prepare_links(worktree, user, ("node_modules",), how="link") == said


def test_a_folder_that_is_itself_a_link_stays_one(trees: tuple[Path, Path], tmp_path: Path) -> None:
    user, worktree = trees
    (tmp_path / "shared").mkdir()
    (user / ".venv").symlink_to("../shared")
    prepare_links(worktree, user, (".venv",), how="copy")
    assert (worktree / ".venv").readlink() == (tmp_path / "shared").resolve()


def test_what_stands_in_the_worktree_stays(trees: tuple[Path, Path]) -> None:
    user, worktree = trees
    (worktree / "node_modules").mkdir()
    (worktree / "node_modules/own").touch()
    assert prepare_links(worktree, user, ("node_modules",), how="copy") == ()
    assert [path.name for path in (worktree / "node_modules").iterdir()] == ["own"]


@pytest.mark.parametrize("how", ["copy", "link"])
def test_an_empty_folder_is_filled_by_a_copy(trees: tuple[Path, Path], how: FolderMode) -> None:
    user, worktree = trees
    (worktree / "node_modules").mkdir()
    assert prepare_links(worktree, user, ("node_modules",), how=how) == ("node_modules: copied",)
    assert not (worktree / "node_modules").is_symlink()
    assert any((worktree / "node_modules").iterdir())


@pytest.mark.parametrize("name", ["../other", "/etc", "."])
def test_a_name_outside_the_repository_is_refused(name: str, trees: tuple[Path, Path]) -> None:
    user, worktree = trees
    with pytest.raises(RepositoryError, match="link"):
        prepare_links(worktree, user, (name,), how="copy")


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize("how", ["copy", "link"])
def test_a_script_in_the_worktree_finds_its_dependency(
    how: str, trees: tuple[Path, Path], tmp_path: Path
) -> None:
    user, worktree = trees
    prepare_links(worktree, user, ("node_modules",), how="copy" if how == "copy" else "link")
    (worktree / "t.js").write_text("if (require('dep') !== 'dep') process.exit(1)\n")
    path = {"PATH": str(Path(shutil.which("node") or "").parent)}
    assert (
        run_tests("node t.js", cwd=worktree, env=path, timeout=PATIENCE, report=tmp_path / "r").end.returncode
        == 0
    )


@pytest.mark.parametrize("how", ["copy", "link"])
def test_what_a_link_of_the_repository_would_lead_out_is_left_out(
    how: FolderMode, trees: tuple[Path, Path], tmp_path: Path
) -> None:
    user, worktree = trees
    (user / "packages/venv").mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (worktree / "packages").symlink_to(outside)
    (said,) = prepare_links(worktree, user, ("packages/venv",), how=how)
    assert "left out" in said
    assert list(outside.iterdir()) == []


def test_an_included_file_goes_neither_through_links_nor_into_other_names(tmp_path: Path) -> None:
    user, worktree, outside = tmp_path / "user", tmp_path / "w1", tmp_path / "outside"
    for folder in (user / "a", user / "b", worktree, outside):
        folder.mkdir(parents=True)
    for name in ("a/x", "b/x", "y"):
        (user / name).write_text("new")
    (worktree / "a").symlink_to(outside)
    (outside / "y").write_text("old")
    (worktree / "y").hardlink_to(outside / "y")
    (user / "linked").symlink_to(outside)
    copy_included(worktree, user, ("a/x", "b/x", "y", "linked/y", "gone"))
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("y", "old")]
    assert (worktree / "b/x").read_text() == (worktree / "y").read_text() == "new"


def leave(folder: Path, what: str) -> None:
    """What an attempt might leave in a copied environment."""
    packages = folder / "lib/python3.11/site-packages"
    match what:
        case "a .pth file":
            (packages / "evil.pth").write_text("import evil\n")
        case "other bytes of the same length and time":
            old = (packages / "tool.py").stat()
            (packages / "tool.py").write_text("B = 1\n")
            os.utime(packages / "tool.py", ns=(old.st_atime_ns, old.st_mtime_ns))
        case "a link in its place":
            folder.rename(folder.with_name("moved"))
            folder.symlink_to(folder.with_name("moved"))
        case "nothing of it":
            shutil.rmtree(folder)
        case "a closed folder":
            (packages / "tool.py").unlink()
            packages.chmod(0)


@pytest.mark.parametrize(
    "what",
    [
        "a .pth file",
        "other bytes of the same length and time",
        "a link in its place",
        "nothing of it",
        "a closed folder",
    ],
)
def test_what_an_attempt_left_in_a_copied_folder_is_gone_for_the_next(what: str, tmp_path: Path) -> None:
    top, tree = tmp_path / "project", tmp_path / "tree"
    packages = ".venv/lib/python3.11/site-packages"
    (top / packages).mkdir(parents=True)
    (top / packages / "tool.py").write_text("A = 1\n")
    tree.mkdir()
    copies = Copies(worktree=tree, repo_top=top, names=(".venv", "venv"), how="copy", turn=True)
    copies.bring()
    assert copies.renew() == ()
    leave(tree / ".venv", what)
    assert copies.renew() == (".venv",)
    assert [path.name for path in (tree / packages).iterdir()] == ["tool.py"]
    assert (tree / packages / "tool.py").read_text() == "A = 1\n"
    assert copies.renew() == ()


@pytest.mark.parametrize("how", ["copy", "link"])
def test_only_what_was_brought_is_kept_at_a_reset(how: FolderMode, tmp_path: Path) -> None:
    top, tree = tmp_path / "project", tmp_path / "tree"
    write(top, {".venv/lib/a.py": "mine\n", "vendored/b.py": "mine\n"})
    write(tree, {"vendored/b.py": "committed\n"})
    copies = Copies(worktree=tree, repo_top=top, names=(".venv", "vendored", "absent"), how=how, turn=False)
    copies.bring()
    assert list(copies.states) == [".venv"]


def test_a_folder_that_an_attempt_puts_in_place_of_a_link_is_gone_for_the_next(tmp_path: Path) -> None:
    top, tree = tmp_path / "project", tmp_path / "tree"
    write(top, {"node_modules/a.js": "mine\n"})
    tree.mkdir()
    copies = Copies(worktree=tree, repo_top=top, names=("node_modules",), how="link", turn=False)
    copies.bring()
    (tree / "node_modules").unlink()
    write(tree, {"node_modules/a.js": "planted\n"})
    assert copies.renew() == ("node_modules",)
    assert (tree / "node_modules").readlink() == top / "node_modules"
    assert (top / "node_modules/a.js").read_text() == "mine\n"
