"""The comparison of imports: what the peer for Python finds, and how differences are counted."""

import importlib
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from benchmarks.imports.__main__ import (
    ANOTHER,
    ASSET,
    NOT_FOUND,
    NOT_PARSED,
    NOT_READ,
    OURS_ONLY,
    Key,
    clone,
    compare,
    imports_of,
    python_peer,
    render,
    resolve_python,
    resolve_scripts,
)
from benchmarks.imports.python_imports import items, resolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clean_room_agent.indexer.imports.python import PythonModules

NAMES = ("a", "b", "c")
FILES = st.builds(
    lambda folders, name: "/".join([*folders, name]),
    st.lists(st.sampled_from(NAMES), max_size=3),
    st.sampled_from(["__init__.py", "a.py", "b.py", "c.py"]),
)
TARGETS = [
    "." * level + dotted
    for level in range(4)
    for dotted in ["", "a", "b", "a.b", "b.a", "a.b.c", "a.a"]
    if level or dotted
]


def make(top: Path, paths: Iterable[str], text: str = "") -> None:
    for path in paths:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(paths=st.sets(FILES, min_size=1, max_size=8))
def test_random_trees_resolve_as_in_python(tmp_path_factory: pytest.TempPathFactory, paths: set[str]) -> None:
    top = tmp_path_factory.mktemp("tree")
    make(top, paths)
    importlib.invalidate_caches()
    modules = PythonModules(paths)
    for source in sorted(paths):
        for target in TARGETS:
            for name in NAMES:
                theirs = resolve(top / source, target, name, (str(top),))
                if theirs is None or not Path(theirs).is_relative_to(top) or top / source == Path(theirs):
                    continue
                ref = modules.find(source, target)
                child = None if ref is None else modules.child(ref, name)
                ours = (child and child.file) or (ref and ref.file)
                assert ours == str(Path(theirs).relative_to(top)), (source, target, name)


def test_every_form_of_import_is_an_item(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(
        "import a.b as c, d\nfrom . import e\nfrom ..f import g as h, i\ndef j():\n    from k import *\n"
    )
    assert items(path) == [("a.b", ""), ("d", ""), (".", "e"), ("..f", "g"), ("..f", "i"), ("k", "*")]
    path.write_text("def (")
    assert items(path) == []


def test_a_repository_is_cloned_once_and_both_sides_agree(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    make(origin, ["src/shop/__init__.py", "src/shop/cart.py"])
    make(origin, ["tests/test_cart.py"], "import os\nfrom shop import cart, missing\nimport requests\n")
    for command in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "x")):
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        subprocess.run(["git", *identity, *command], cwd=origin, check=True)
    repository = clone("shop", origin, tmp_path / "work", ["src"])
    assert clone("shop", tmp_path / "gone", tmp_path / "work", ["src"]) == repository
    ours, _ = resolve_python(repository, imports_of(repository, "python"))
    peer = python_peer(repository)
    assert ours == peer
    result = compare(repository, peer, ours)
    assert (result.inside, result.same, result.ours_only, result.percent) == (2, 2, 0, 100.0)
    assert resolve_scripts(repository, imports_of(repository, "javascript"))[0] == {}


def test_differences_are_counted_by_kind(tmp_path: Path) -> None:
    def key(target: str) -> Key:
        return "m.ts", target, ""

    peer = {
        key("same"): "a",
        key("unread"): "b",
        key("lost"): "c",
        key("moved"): "d",
        key("x"): "",
        key("y?raw"): "",
    }
    ours = {
        key("same"): "a",
        key("lost"): "",
        key("moved"): "e",
        key("x"): "f.ts",
        key("y?raw"): "g.ts",
        key("new"): "h.ts",
    }
    make(tmp_path / "work", ["r/x"])
    subprocess.run(["git", "init", "-q"], cwd=tmp_path / "work" / "r", check=True)
    repository = clone("r", tmp_path, tmp_path / "work", ())
    result = compare(repository, peer, ours)
    assert result.kinds == dict.fromkeys((NOT_READ, NOT_FOUND, ANOTHER, OURS_ONLY, ASSET, NOT_PARSED), 1)
    assert (result.inside, result.same, result.different, result.ours_only) == (4, 1, 3, 3)
    page = render([result], [("r", 1, 2, 0.001)])
    assert "| r | 4 | 1 | 3 | 3 | 25.00 % |" in page
    assert "**Another file** (r 1)." in page
    assert "- `m.ts`: `moved` is `d`, ours `e`" in page
    assert "| r | 1 | 2 | 1 ms | 500.0 us |" in page
