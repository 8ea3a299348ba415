import json
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.languages.base import WORD, Reach
from clean_room_agent.languages.ecmascript.specifiers import EcmaScriptModules, is_configuration
from clean_room_agent.languages.python.modules import PythonModules

FOLDER = st.lists(st.sampled_from(["a", "b", "src", "lib"]), max_size=3).map("/".join)
PYTHON_NAMES = (
    "__init__.py",
    "__init__.pyi",
    "a.py",
    "b.py",
    "c.pyi",
    "typing.py",
    "conftest.py",
    "setup.py",
)
PYTHON_FILES = st.builds(
    lambda folder, name: f"{folder}/{name}".lstrip("/"),
    FOLDER,
    st.sampled_from([*PYTHON_NAMES, "pyproject.toml"]),
)
PARTS = ("a", "b", "src", "typing")
DOTTED = ["", *PARTS, *(f"{one}.{other}" for one in PARTS for other in PARTS), "lib.a.b", "a.b.c"]
PYTHON_TARGETS = ["." * level + dotted for level in range(4) for dotted in DOTTED if level or dotted]
SCRIPT_FILES = st.builds(
    lambda folder, name: f"{folder}/{name}".lstrip("/"),
    FOLDER,
    st.sampled_from(
        ["index.ts", "a.ts", "b.js", "c.d.ts", "main.ts", "a.json", "index.js", "c.css", "a.x.ts"]
    ),
)
WRITTEN = (
    "./a ./b.js ./c ../a ../src .. . ./ ../b/index ./c.css ./a.x @/a @/b/a @/ ~ #in/a #one p p/a p/src/b q q/sub q/x/a "
    "src/a lib /a /src/b a b a/b @p/a @p/b ../../lib ./src/main ../lib/a.json"
)
SPECIFIERS = WRITTEN.split()
MANIFESTS: dict[str, object] = {
    "package.json": {
        "workspaces": ["*"],
        "name": "root",
        "main": "lib/c.js",
        "imports": {"#in/*": "./src/*", "#one": "./b/c.js"},
    },
    "a/package.json": {"name": "p", "main": "dist/b.js"},
    "b/package.json": {
        "name": "q",
        "exports": {".": "./dist/index.js", "./sub": "./lib/a.js", "./x/*": "./*"},
    },
    "src/package.json": {"main": "a"},
}
TSCONFIGS: dict[str, object] = {
    "tsconfig.json": {
        "compilerOptions": {
            "paths": {"@/*": ["./src/*"], "~": ["./lib/b.ts"], "@p/*": ["./*/src"]},
            "rootDirs": ["a", "b"],
        }
    },
    "a/tsconfig.json": {"compilerOptions": {"baseUrl": "src"}},
}


def covered(found: Reach, source: str, target: str, names: tuple[str, ...]) -> bool:
    under = any(not folder or source.startswith(f"{folder}/") for folder in found.folders)
    return under or found.everything or not found.words.isdisjoint({*WORD.findall(target), *names})


def python_answers(paths: set[str], source: str) -> dict[tuple[str, str], tuple[str | None, str | None]]:
    modules = PythonModules(paths)
    answers = {}
    for target in PYTHON_TARGETS:
        ref = modules.find(source, target)
        for name in PARTS:
            child = None if ref is None else modules.child(ref, name)
            answers[target, name] = None if ref is None else ref.file, None if child is None else child.file
    return answers


@given(st.sets(PYTHON_FILES, min_size=1, max_size=9), st.sets(PYTHON_FILES, min_size=1, max_size=3))
def test_python_imports_that_change_lie_within_reach(kept: set[str], changed: set[str]) -> None:
    changed -= kept
    modules = PythonModules(kept)
    reaches = [modules.reach(path) for path in changed]
    for source in (path for path in kept if path.endswith((".py", ".pyi"))):
        before, after = python_answers(kept | changed, source), python_answers(kept, source)
        for (target, name), answer in before.items():
            if answer != after[target, name]:
                said = source, target, name, reaches
                assert any(covered(one, source, target, (name,)) for one in reaches), said


@given(
    st.sets(SCRIPT_FILES, min_size=1, max_size=9),
    st.sets(SCRIPT_FILES, min_size=1, max_size=2),
    st.sets(st.sampled_from(sorted(MANIFESTS | TSCONFIGS))),
)
def test_script_imports_that_change_lie_within_reach(
    kept: set[str], changed: set[str], configs: set[str]
) -> None:
    changed -= kept
    texts = {path: json.dumps((MANIFESTS | TSCONFIGS)[path]) for path in configs}
    read: Callable[[str], str | None] = texts.get
    after = EcmaScriptModules(kept | configs, read)
    before = EcmaScriptModules(kept | changed | configs, read)
    reaches = [after.reach(path) for path in changed]
    for source in kept:
        for specifier in SPECIFIERS:
            if before.find(source, specifier) != after.find(source, specifier):
                said = source, specifier, reaches
                assert any(covered(one, source, specifier, ()) for one in reaches), said


def test_a_plain_module_concerns_only_those_that_name_it() -> None:
    modules = PythonModules(["pkg/__init__.py", "pkg/core.py"])
    assert modules.reach("pkg/new.py") == Reach(frozenset({"new"}))


def test_a_package_concerns_what_is_in_it_and_names_it_or_its_modules() -> None:
    modules = PythonModules(["top/sub/core.py", "top/__init__.py"])
    assert modules.reach("top/sub/__init__.py") == Reach(
        frozenset({"__init__", "sub", "core"}), frozenset({"top/sub"})
    )


def test_a_new_folder_is_named_by_those_whom_it_concerns() -> None:
    modules = PythonModules(["top/__init__.py"])
    assert modules.reach("top/new/deep/x.py").words == {"x", "deep", "new"}


def test_a_script_that_no_config_names_concerns_only_those_that_name_it() -> None:
    modules = EcmaScriptModules(["src/main.ts"], dict[str, str]().get)
    assert modules.reach("src/util.test.ts") == Reach(frozenset({"util"}))


def test_configs_concern_all_scripts() -> None:
    names = "package.json a/tsconfig.build.json jsconfig.json pnpm-workspace.yaml lerna.json"
    for path in names.split():
        assert is_configuration(path)
        assert EcmaScriptModules([], dict[str, str]().get).reach(path).everything
    assert not is_configuration("package-lock.json")


def test_words_are_the_parts_of_targets() -> None:
    assert WORD.findall("..pkg.sub") == ["pkg", "sub"]
    assert WORD.findall("@scope/pkg/file.test.js?raw") == ["@scope", "pkg", "file", "test", "js", "raw"]
