import os
from pathlib import Path

import pytest
from testing.repositories import write

from clean_room_agent.tree_removal import remove_all_but, remove_tree


def every_path(top: Path) -> list[str]:
    return sorted(str(path.relative_to(top)) for path in top.rglob("*"))


def test_what_is_not_there_is_removed_already(tmp_path: Path) -> None:
    write(tmp_path, {"other": ""})
    remove_tree(tmp_path / "none")
    remove_tree(tmp_path / "none/in none")
    assert every_path(tmp_path) == ["other"]


def test_a_tree_goes_and_what_its_links_lead_to_stays(tmp_path: Path) -> None:
    write(tmp_path, {"tree/a/b/c.txt": "", "tree/a/d": "", "mine/e.txt": ""})
    (tmp_path / "tree/link").symlink_to(tmp_path / "mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    os.mkfifo(tmp_path / "tree/a/fifo")
    (tmp_path / "tree/a/b").chmod(0)
    (tmp_path / "tree/a").chmod(0o500)
    for name in ("tree", "link"):
        remove_tree(tmp_path / name)
    assert every_path(tmp_path) == ["mine", "mine/e.txt"]


def test_only_what_is_wanted_stays(tmp_path: Path) -> None:
    write(tmp_path, {"a/b.txt": "", "a/c/d.txt": "", "new/e.txt": "", "sub/f.txt": "", "kept/in/g.txt": ""})
    write(tmp_path, {"kept/h.txt": "", "was a file/i.txt": ""})
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "a").chmod(0o500)
    remove_all_but(
        tmp_path, {"a/b.txt", "was a file", "missing/j.txt"}, folders={"sub"}, kept={"kept/in", "kept/no"}
    )
    assert every_path(tmp_path) == ["a", "a/b.txt", "kept", "kept/in", "kept/in/g.txt", "sub"]
    assert (tmp_path / "a").stat().st_mode & 0o700 == 0o700


@pytest.mark.parametrize("name", ["a", "b" * 250])
def test_depth_and_length_of_names_know_no_bound(tmp_path: Path, name: str) -> None:
    before = Path.cwd()
    os.chdir(tmp_path)
    for _ in range(1100):
        os.mkdir(name)  # noqa: PTH102 - relative to where we are
        os.chdir(name)
    os.chdir(before)
    remove_tree(tmp_path / name)
    assert every_path(tmp_path) == []
