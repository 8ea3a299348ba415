from collections.abc import Mapping

import pytest

from clean_room_agent.indexer.languages.parsed import RawImport
from clean_room_agent.indexer.resolve import resolve

Imports = Mapping[str, tuple[RawImport, ...]]


def raw(target: str, *names: str, kind: str = "import") -> RawImport:
    return RawImport(target=target, names=names, kind=kind)


def targets(imports: Imports, *others: str) -> list[tuple[str, str, str]]:
    return list(resolve(imports, [*imports, *others], lambda path: imports.get(path, ())))


@pytest.mark.parametrize(
    ("source", "written", "target"),
    [
        ("main.py", raw("pkg.mod"), "pkg/mod.py"),
        ("main.py", raw("pkg"), "pkg/__init__.py"),
        ("main.py", raw("pkg", "mod"), "pkg/mod.py"),
        ("main.py", raw("pkg", "Name"), "pkg/__init__.py"),
        ("pkg/other.py", raw(".", "mod"), "pkg/mod.py"),
        ("pkg/other.py", raw(".mod", "Name"), "pkg/mod.py"),
        ("pkg/sub/deep.py", raw("..mod", "Name"), "pkg/mod.py"),
        ("pkg/sub/deep.py", raw("..", "mod"), "pkg/mod.py"),
        ("tests/test_it.py", raw("lib_in_src.core"), "src/lib_in_src/core.py"),
        ("src/lib_in_src/api.py", raw("lib_in_src.core", "x"), "src/lib_in_src/core.py"),
        ("main.py", raw("space.part", "x"), "space/part.py"),
        ("main.py", raw("space", "part"), "space/part.py"),
        ("tests/test_it.py", raw("helpers"), "tests/helpers.py"),
        ("main.py", raw("stubs"), "stubs.pyi"),
        ("main.py", raw("monorepo_pkg.a"), "services/one/monorepo_pkg/a.py"),
    ],
)
def test_python_imports_reach_their_file(source: str, written: RawImport, target: str) -> None:
    others = ("pkg/__init__.py", "pkg/mod.py", "pkg/sub/__init__.py", "src/lib_in_src/__init__.py",
              "src/lib_in_src/core.py", "space/part.py", "tests/helpers.py", "stubs.pyi",
              "services/one/monorepo_pkg/__init__.py", "services/one/monorepo_pkg/a.py")  # fmt: skip
    assert targets({source: (written,)}, *others) == [(source, target, "import")]


@pytest.mark.parametrize(
    "written", [raw("os.path"), raw("json"), raw("...", "x"), raw("......far"), raw("pkg.none")]
)
def test_what_is_not_in_the_repository_has_no_edge(written: RawImport) -> None:
    assert targets({"pkg/a.py": (written,)}, "pkg/__init__.py", "data/json/__init__.py") == []


def test_a_name_is_followed_through_packages_that_pass_it_on() -> None:
    imports = {
        "main.py": (raw("pkg", "Thing"),),
        "pkg/__init__.py": (raw(".inner", "Thing"),),
        "pkg/inner/__init__.py": (raw(".thing", "Thing"), raw(".unused", "Other")),
    }
    found = targets(imports, "pkg/inner/thing.py", "pkg/inner/unused.py")
    assert [target for source, target, _ in found if source == "main.py"] == [
        "pkg/__init__.py",
        "pkg/inner/__init__.py",
        "pkg/inner/thing.py",
    ]


def test_packages_that_pass_a_name_in_a_circle_end() -> None:
    imports = {"a/__init__.py": (raw("b", "x"),), "b/__init__.py": (raw("a", "x"),)}
    assert targets(imports) == [
        ("a/__init__.py", "b/__init__.py", "import"),
        ("b/__init__.py", "a/__init__.py", "import"),
    ]


def test_an_import_at_run_time_counts_more_than_one_for_types() -> None:
    types, both = (
        raw("b", kind="type_ref"),
        (raw("b", kind="type_ref"), raw("b"), raw("b", "x", kind="type_ref")),
    )
    assert targets({"a.py": (types,)}, "b.py") == [("a.py", "b.py", "type_ref")]
    assert targets({"a.py": both}, "b.py") == [("a.py", "b.py", "import")]


@pytest.mark.parametrize(
    ("specifier", "target"),
    [
        ("./util", "web/util.ts"),
        ("./util.js", "web/util.ts"),
        ("./view.jsx", "web/view.tsx"),
        ("./esm.mjs", "web/esm.mts"),
        ("./real.js", "web/real.js"),
        ("./folder", "web/folder/index.tsx"),
        ("./folder/", "web/folder/index.tsx"),
        (".", "web/index.js"),
        ("..", "index.js"),
        ("../shared/types", "shared/types.d.ts"),
        ("./data.json", "web/data.json"),
        ("./style.css?inline", "web/style.css"),
    ],
)
def test_ecmascript_specifiers_reach_their_file(specifier: str, target: str) -> None:
    others = ("web/util.ts", "web/view.tsx", "web/esm.mts", "web/real.js", "web/real.ts", "web/folder/index.tsx",
              "web/index.js", "index.js", "shared/types.d.ts", "web/data.json", "web/style.css")  # fmt: skip
    assert targets({"web/main.ts": (raw(specifier),)}, *others) == [("web/main.ts", target, "import")]


@pytest.mark.parametrize("specifier", ["react", "node:fs", "./none", "../../../up", "/abs", ""])
def test_packages_and_missing_files_have_no_edge(specifier: str) -> None:
    assert targets({"web/main.ts": (raw(specifier),)}, "react.js") == []
