"""Folders that tools made: told by certain signs, kept where something in them is tracked."""

import json
import os
from pathlib import Path

import pytest
from testing.repositories import git, make_repository, write

from clean_room_agent.git.generated import (
    CACHE_SIGNATURE,
    Generated,
    generated_in,
    generated_words,
    split_generated,
)
from clean_room_agent.git.repository import list_files, list_work_tree

TAG = CACHE_SIGNATURE.decode() + "\n# made by a tool\n"
SIGNS = (
    ("env", "a Python environment", {"env/pyvenv.cfg": "home = /usr\n", "env/lib/six.py": "x = 1\n"}),
    ("tools/conda", "a conda environment", {"tools/conda/conda-meta/history": "", "tools/conda/bin/x": ""}),
    ("web/node_modules", "installed packages", {"web/node_modules/left/index.js": "x\n"}),
    ("pkg/__pycache__", "compiled Python", {"pkg/__pycache__/a.py": "x = 1\n"}),
    (".tox", "test environments", {".tox/py311/x.py": "x = 1\n"}),
    (".nox", "test environments", {".nox/lint/x.py": "x = 1\n"}),
    (".mypy_cache", "a cache", {".mypy_cache/3.11/a.json": "{}"}),
    (".ruff_cache", "a cache", {".ruff_cache/0.1/a": ""}),
    (".pytest_cache", "a cache", {".pytest_cache/v/a": ""}),
    ("out", "a cache", {"out/CACHEDIR.TAG": TAG, "out/gen.py": "x = 1\n"}),
    ("crate/target", "build output", {"crate/Cargo.toml": "", "crate/target/debug/gen.rs": ""}),
    (
        "lib/build",
        "build output",
        {"lib/setup.py": "", "lib/build/lib/a.py": "", "lib/build/bdist.linux/x": ""},
    ),
    (
        "dist",
        "build output",
        {"pyproject.toml": "", "dist/a-1.0.tar.gz": "", "dist/a-1.0-py3-none-any.whl": ""},
    ),
)
SOURCES = (
    {"env/settings.py": "x = 1\n"},
    {"venv/__init__.py": ""},
    {"target/main.py": "x = 1\n"},
    {"build/make.py": "x = 1\n", "setup.py": ""},
    {"build/lib/helper.py": "x = 1\n", "setup.py": ""},
    {"dist/index.js": "x\n", "pyproject.toml": ""},
    {"dist/a-1.0.tar.gz": ""},
    {"out/CACHEDIR.TAG": "a page about cache tags\n", "out/x.py": "x = 1\n"},
    {"conda-meta/notes.md": "x\n"},
    {"pyvenv.cfg": "home = /usr\n", "app.py": "x = 1\n"},
    {"node_modules": "a file\n"},
)


def listed(top: Path) -> tuple[str, ...]:
    return tuple(sorted(set(list_work_tree(top).paths)))


@pytest.mark.parametrize(("folder", "what", "files"), SIGNS, ids=[sign[0] for sign in SIGNS])
def test_a_folder_is_known_by_what_a_tool_leaves_in_it(
    tmp_path: Path, folder: str, what: str, files: dict[str, str]
) -> None:
    top = write_untracked(tmp_path, files)
    listing = list_work_tree(top)
    beside = {path for path in files if not path.startswith(f"{folder}/")}
    assert listing.generated == (Generated(folder, what),)
    assert set(listing.paths) == set(list_files(top)) == {"a.py", *beside}


@pytest.mark.parametrize("files", SOURCES, ids=[min(files) for files in SOURCES])
def test_a_name_alone_makes_no_source_a_product(tmp_path: Path, files: dict[str, str]) -> None:
    listing = list_work_tree(write_untracked(tmp_path, files))
    assert (listing.generated, set(listing.paths)) == ((), {"a.py", *files})


def write_untracked(tmp_path: Path, files: dict[str, str]) -> Path:
    top = make_repository(tmp_path / "repo", {"a.py": "a = 1\n"})
    write(top, dict(files))
    return top


def test_a_folder_with_a_tracked_file_is_the_repositorys_own(tmp_path: Path) -> None:
    fixture = "tests/node_modules/known/index.js"
    top = make_repository(tmp_path / "repo", {fixture: "x\n"})
    write(top, {"tests/node_modules/new/index.js": "y\n", "tests/node_modules/new/__pycache__/x.py": "z\n"})
    listing = list_work_tree(top)
    assert set(listing.paths) == {fixture, "tests/node_modules/new/index.js"}
    assert listing.generated == (Generated("tests/node_modules/new/__pycache__", "compiled Python"),)


def test_tracking_a_file_of_it_brings_a_folder_in(tmp_path: Path) -> None:
    top = write_untracked(tmp_path, {"env/pyvenv.cfg": "", "env/lib/six.py": "x = 1\n"})
    assert listed(top) == ("a.py",)
    git(top, "add", "env/pyvenv.cfg")
    assert listed(top) == ("a.py", "env/lib/six.py", "env/pyvenv.cfg")


def test_only_the_outermost_folder_is_named(tmp_path: Path) -> None:
    top = write_untracked(
        tmp_path, {"env/pyvenv.cfg": "", "env/lib/__pycache__/x.pyc": "", "env/node_modules/a/b.js": ""}
    )
    assert list_work_tree(top).generated == (Generated("env", "a Python environment"),)


def test_a_linked_sign_is_none(tmp_path: Path) -> None:
    top = write_untracked(tmp_path, {"src/new.py": "x = 1\n", "real.cfg": ""})
    (top / "src/pyvenv.cfg").symlink_to("../real.cfg")
    assert list_work_tree(top).generated == ()


def test_a_name_in_an_account_may_not_be_utf8() -> None:
    folder = Generated("caf\udce9/build", "built")
    account = json.dumps({"generated": [[folder.path, folder.what]], "links": ["caf\udce9"]})
    assert generated_in(account) == (folder,)
    assert generated_in("") == ()


def test_folders_deeper_than_pythons_stack_are_looked_at(tmp_path: Path) -> None:
    deep = "/".join(["d"] * 1500)
    kept, found = split_generated(str(tmp_path), (), (f"{deep}/x.py", f"{deep}/__pycache__/x.pyc"))
    assert (kept, found) == ((f"{deep}/x.py",), (Generated(f"{deep}/__pycache__", "compiled Python"),))


def test_names_that_are_not_utf_8_are_as_good_as_others(tmp_path: Path) -> None:
    folder = os.fsdecode(b"caf\xe9")
    kept, found = split_generated(str(tmp_path), (), (f"{folder}/node_modules/a.js", f"{folder}/b.js"))
    assert (kept, found) == (
        (f"{folder}/b.js",),
        (Generated(f"{folder}/node_modules", "installed packages"),),
    )


def test_another_repository_is_no_folder_to_look_into(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/pyvenv.cfg").touch()
    assert split_generated(str(tmp_path), (), ("other/",)) == (("other/",), ())


def test_one_line_names_what_was_left_out_why_and_how_to_have_it_in() -> None:
    caches = [Generated(f"p{number}/__pycache__", "compiled Python") for number in range(6)]
    assert generated_words([Generated("env", "a Python environment"), *caches]) == (
        "left out, made by tools and not tracked: env/ (a Python environment); p0/__pycache__/, p1/__pycache__/, "
        "p2/__pycache__/, p3/__pycache__/ and 2 more (compiled Python); to include a folder, track a file in it (git add)"
    )
    assert generated_words(()) == ""
