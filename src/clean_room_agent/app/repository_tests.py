"""How a repository runs its tests, judging by its files, for `cra init`."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from clean_room_agent import safe_open
from clean_room_agent.config import BYTE_ORDER_MARK, load_toml
from clean_room_agent.languages.jsonc import as_object, as_text, read_object
from clean_room_agent.paths import is_named_test

LOOKED_AT = 40
"""Test files that are read to see which framework they use."""
MAX_BYTES = 1 << 20
"""Bytes that are read of one file."""
PYTEST_FILES = frozenset({"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "conftest.py"})
PYTEST_SECTIONS = (("tox.ini", "[pytest]"), ("setup.cfg", "[tool:pytest]"))
PACKAGERS = (
    ("uv.lock", "uv"),
    ("poetry.lock", "poetry"),
    ("pdm.lock", "pdm"),
    ("Pipfile.lock", "pipenv"),
    ("Pipfile", "pipenv"),
    ("pixi.lock", "pixi"),
)
"""What tells that an environment outside the tree is entered by `TOOL run`: a file, or a table of the tool."""
LOCKS = (
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("pnpm-lock.yaml", "pnpm"),
    ("pnpm-workspace.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
)
RUN = {"npm": "npm run {}", "pnpm": "pnpm run {}", "yarn": "yarn run {}", "bun": "bun run {}"}
"""How a package manager runs a script."""
RUN_TEST = {"npm": "npm test", "pnpm": "pnpm test", "yarn": "yarn test", "bun": "bun run test"}
RUN_BELOW = {
    "npm": "npm --prefix {} test",
    "pnpm": "pnpm --dir {} test",
    "yarn": "yarn --cwd {} test",
    "bun": "bun run --cwd {} test",
}
RUN_IN_EACH = {
    "npm": "npm test --workspaces --if-present",
    "pnpm": "pnpm -r test",
    "yarn": "yarn workspaces run test",
    "bun": "bun run --filter '*' test",
}
BERRY = "yarn workspaces foreach -A run test"
"""The same for yarn from 2 on."""
EXECUTE = {"npm": "npx {}", "pnpm": "pnpm exec {}", "yarn": "yarn {}", "bun": "bunx {}"}
SCRIPTS = ("test", "tests", "test:unit", "unit")
"""Scripts of a package.json, the likeliest first."""
SCRIPT_RUNNERS = (("vitest", "vitest run"), ("jest", "jest"), ("mocha", "mocha"), ("ava", "ava"))
SCRIPT_TEST = re.compile(r"(?:^|/)(?:[^/]+[._]test\.|test\.|tests?/(?:[^/]+/)*[^/]+\.)[cm]?[jt]sx?\Z")
IMPORTED_RUNNERS = (("bun:test", "bun test"), ("node:test", "node --test"))
RECIPES = ("test", "tests", "check")
"""Targets and recipes, the likeliest first."""
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
JUSTFILES = ("justfile", "Justfile", ".justfile")
TASKFILES = ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml")
TASK = re.compile(r"^(?:  |    |\t)(\w+):", re.MULTILINE)
NOX_SESSION = re.compile(r"^def (tests?|unit_tests?|unit|pytest)\(", re.MULTILINE)


class _Files:
    """The files of a repository."""

    def __init__(self, top: Path, paths: Sequence[str]) -> None:
        self.top = top
        self.paths = frozenset(paths)

    def text(self, path: str) -> str:
        """The beginning of the regular file at `path`; "" if there is none."""
        try:
            data = safe_open.read_bytes(self.top, path, max_bytes=MAX_BYTES)
        except OSError:
            return ""
        return data.decode("utf-8", "replace").removeprefix(BYTE_ORDER_MARK)

    def first(self, names: Sequence[str]) -> str:
        """The first of these files in the top folder that there is; "" for none."""
        return next((name for name in names if name in self.paths), "")

    def nearest(self, name: str) -> list[str]:
        """The files of this name, those nearest to the top folder first."""
        found = [path for path in self.paths if path.rpartition("/")[2] == name]
        return sorted(found, key=lambda path: (path.count("/"), path))

    @cached_property
    def tools(self) -> Mapping[str, object]:
        """The tables of tools in pyproject.toml."""
        try:
            return as_object(load_toml(self.text("pyproject.toml")).get("tool"))
        except (ValueError, RecursionError):
            return {}

    @cached_property
    def python_tests(self) -> list[str]:
        """The files that are tests in Python by their names."""
        return sorted(path for path in self.paths if path.endswith(".py") and is_named_test(path))

    def package(self, path: str) -> Mapping[str, object]:
        """The contents of the package.json at `path`."""
        return read_object(self.text(path))


def find_test_commands(top: Path, paths: Sequence[str]) -> tuple[str, ...]:
    """The commands that run the tests of the repository at `top`, whose files are `paths` (relative): for each of the tools that it uses, the most direct first.
    Empty if the files don't show any.
    """
    files = _Files(top, paths)
    return tuple(dict.fromkeys(filter(None, (find(files) for find in FINDERS))))


def _python(files: _Files) -> str:
    """pytest, Django's or unittest's command, by their configuration and by what the tests import."""
    django = files.nearest("manage.py")[:1]
    if _configures_pytest(files):
        return _hatch_script(files) or _pytest(files)
    if django and (files.python_tests or django == ["manage.py"]):
        folder = django[0].rpartition("/")[0]
        return (f"cd {folder} && " if folder else "") + f"{_interpreter(files)} manage.py test"
    if not files.python_tests:
        return _hatch_script(files)
    texts = [files.text(path) for path in files.python_tests[:LOOKED_AT]]
    if any("import pytest" in text or "from pytest" in text for text in texts):
        return _hatch_script(files) or _pytest(files)
    discovery = _unittest_options(files) if any("unittest" in text for text in texts) else None
    if discovery is None:
        return _hatch_script(files) or _pytest(files)
    return f"{_interpreter(files)} -m unittest {discovery}"


def _configures_pytest(files: _Files) -> bool:
    return (
        any(path.rpartition("/")[2] in PYTEST_FILES for path in files.paths)
        or "pytest" in files.tools
        or any(section in files.text(name) for name, section in PYTEST_SECTIONS)
    )


def _unittest_options(files: _Files) -> str | None:
    """The options with which unittest finds all tests; None if it would not: it looks into packages alone."""
    tests = files.python_tests
    if not all(path.rpartition("/")[2].startswith("test") for path in tests):
        return None
    starts = {_outside_packages(files, path.rpartition("/")[0]) for path in tests}
    if len(starts) > 1:
        return None
    start = starts.pop()
    return f"discover -v -s {start}" if start else "-v"


def _outside_packages(files: _Files, folder: str) -> str:
    """The innermost folder from which `folder` is reached through packages only."""
    while folder and f"{folder}/__init__.py" in files.paths:
        folder = folder.rpartition("/")[0]
    return folder


def _environment(files: _Files) -> str:
    """The Python of an environment in the tree; "" if there is none."""
    return next(
        (f"{name}/bin/python" for name in (".venv", "venv") if (files.top / name / "bin/python").exists()),
        "",
    )


def _packager(files: _Files) -> str:
    return next((tool for name, tool in PACKAGERS if name in files.paths or tool in files.tools), "")


def _interpreter(files: _Files) -> str:
    packager = _packager(files)
    return _environment(files) or (f"{packager} run python" if packager else "python3")


def _pytest(files: _Files) -> str:
    packager = _packager(files)
    if packager and not _environment(files):
        return f"{packager} run pytest -q"
    return f"{_interpreter(files)} -m pytest -q"


def _hatch_script(files: _Files) -> str:
    """The script called test of one of hatch's environments, or its own command for tests; "" if there is neither."""
    if _environment(files):
        return ""
    try:
        own = load_toml(files.text("hatch.toml"))
    except (ValueError, RecursionError):
        own = {}
    environments = as_object({**as_object(files.tools.get("hatch")), **own}.get("envs"))
    for name, table in sorted(environments.items(), key=lambda entry: entry[0] != "default"):
        if "test" in as_object(as_object(table).get("scripts")):
            return "hatch run test" if name == "default" else f"hatch run {name}:test"
    return "hatch test" if "hatch-test" in environments else ""


def _scripts(files: _Files) -> str:
    """The command of a package.json, at the top or of workspaces, or what its tests import."""
    top = files.package("package.json")
    manager = _manager(files, top)
    name = _script(top)
    if name:
        return RUN_TEST[manager] if name == "test" else RUN[manager].format(name)
    members = [path for path in files.nearest("package.json") if "/" in path]
    tested = [path.rpartition("/")[0] for path in members if _script(files.package(path)) == "test"]
    if tested and ("workspaces" in top or "pnpm-workspace.yaml" in files.paths):
        is_berry = manager == "yarn" and _is_berry(files, top)
        return BERRY if is_berry else RUN_IN_EACH[manager]
    needs = {*as_object(top.get("devDependencies")), *as_object(top.get("dependencies"))}
    runner = next((command for package, command in SCRIPT_RUNNERS if package in needs), "")
    if runner:
        return EXECUTE[manager].format(runner)
    if tested:
        return RUN_BELOW[manager].format(tested[0])
    texts = [files.text(path) for path in sorted(filter(SCRIPT_TEST.search, files.paths))[:LOOKED_AT]]
    return next((command for word, command in IMPORTED_RUNNERS if any(word in text for text in texts)), "")


def _script(package: Mapping[str, object]) -> str:
    """The name of the script that runs tests; "" if there is none but npm's placeholder."""
    scripts = as_object(package.get("scripts"))
    usable = (name for name in SCRIPTS if as_text(scripts.get(name)).strip())
    return next((name for name in usable if "no test specified" not in as_text(scripts[name])), "")


def _manager(files: _Files, package: Mapping[str, object]) -> str:
    named = as_text(package.get("packageManager")).partition("@")[0]
    return named if named in RUN else next((tool for name, tool in LOCKS if name in files.paths), "npm")


def _is_berry(files: _Files, package: Mapping[str, object]) -> bool:
    version = as_text(package.get("packageManager")).partition("@")[2]
    return not version.startswith(("0.", "1.")) if version else ".yarnrc.yml" in files.paths


def _deno(files: _Files) -> str:
    name = files.first(("deno.json", "deno.jsonc"))
    if not name:
        return ""
    if "test" in as_object(files.package(name).get("tasks")):
        return "deno task test"
    return "deno test" if any(map(SCRIPT_TEST.search, files.paths)) else ""


def _make(files: _Files) -> str:
    heads = _heads(files.text(files.first(MAKEFILES)))
    target = _likeliest(word for head in heads if "=" not in head for word in head.split())
    return f"make {target}" if target else ""


def _just(files: _Files) -> str:
    heads = _heads(files.text(files.first(JUSTFILES)))
    recipe = _likeliest(word.removeprefix("@") for head in heads for word in head.split()[:1])
    return f"just {recipe}" if recipe else ""


def _heads(text: str) -> Iterator[str]:
    """What stands before the colon of each rule of a Makefile or justfile."""
    for line in text.splitlines():
        head, colon, rest = line.partition(":")
        if colon and not rest.startswith("=") and not line.startswith((" ", "\t", "#")):
            yield head


def _task(files: _Files) -> str:
    name = _likeliest(TASK.findall(files.text(files.first(TASKFILES))))
    return f"task {name}" if name else ""


def _likeliest(names: Iterator[str] | list[str]) -> str:
    known = set(names)
    return next((name for name in RECIPES if name in known), "")


def _nox(files: _Files) -> str:
    if "noxfile.py" not in files.paths:
        return ""
    session = NOX_SESSION.search(files.text("noxfile.py"))
    return f"nox -s {session[1]}" if session else "nox"


def _tox(files: _Files) -> str:
    is_used = files.first(("tox.ini", "tox.toml")) or "tox" in files.tools
    return "tox -q" if is_used or "[tox:tox]" in files.text("setup.cfg") else ""


def _compiled(files: _Files) -> str:
    if "go.mod" in files.paths and any(path.endswith("_test.go") for path in files.paths):
        return "go test ./..."
    return "cargo test" if "Cargo.toml" in files.paths else ""


FINDERS: tuple[Callable[[_Files], str], ...] = (
    _python,
    _scripts,
    _deno,
    _compiled,
    _make,
    _just,
    _task,
    _nox,
    _tox,
)
"""What looks for one kind of tool each; a recipe may start any of those before it."""
