"""Which files of the base decide whether tests pass, besides tests and what configures them by its name: the scripts of the
test command, data that tests read, parts of tests in product code, and modules that a new file would hide.

What names cannot say comes from the trace of the baseline, which the guard wrote (`guard/cra_trace.py`, `guard/trace.cjs`).
A file that is read counts as the tests' data if code of a test opened it, or if product code did for a test that names it,
and product code does not. A run without a trace, of an older version or another runner, goes by names and scripts alone.
"""

import ast
import json
import posixpath
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from clean_room_agent.languages.test_runner import MAX_BYTES, GuardReader, TooMuchError, guard_folder
from clean_room_agent.orchestrator.test_runs.scripts import Read, scripts_of
from clean_room_agent.paths import (
    HOLDS_TESTS,
    folder_of_tests,
    is_code,
    is_named_test,
    is_test_configuration,
    is_test_data,
    is_test_module,
    is_test_path,
    is_test_support,
    shadows_runner,
)

MAX_FACTS = 3000
"""Facts of one kind that are kept."""
MAX_TEXTS = 200
MAX_LINE = 20_000
IMPORT_ROOTS = ("", "src", "lib")
PYTHONS_OWN = sys.stdlib_module_names - {"test", "this", "antigravity"}
"""`test` is what many projects call their own tests."""
UNSHADOWED = re.compile(r"(?:^|/)(?:__main__|conftest|setup|test_[^/]*|[^/]*_test)\.py\Z|^__init__\.py\Z")
"""They are not imported by name, or have rules of their own."""
SCRIPT_SUFFIXES = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
HELPS = re.compile(
    r"(?m)^\s*(?:import|from)\s+(?:pytest|unittest|hypothesis|numpy\.testing)\b|^\s*def\s+assert|\braise\s+AssertionError\b"
)
"""In the text of a Python module that helps tests."""
SCRIPT_HELPS = re.compile(
    r"[\"'](?:node:assert(?:/strict)?|assert|chai|vitest|@jest/globals)[\"']|\bexpect\("
)
HELPERS = re.compile(r"assert|expect|match|check|verif|helper|support|fixture|mock|tool", re.IGNORECASE)
"""In the path of a script that helps tests."""
ABSENT = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
MIXED = frozenset({"pyproject.toml", "package.json"})
"""They configure more than tests; their settings are compared."""


class Trace(Struct, frozen=True, kw_only=True):
    """What the processes of the baseline were seen to depend on; paths relative to the tree, all sorted."""

    reads: tuple[tuple[str, ...], ...] = ()
    """(file, the files of the tree whose code opened it, innermost first); without these, the runner itself did."""
    scripts: tuple[str, ...] = ()
    """Scripts, and modules only they use, of the processes between the command and the runner."""
    parts: tuple[str, ...] = ()
    """Files that define plugins of the runner, fixtures or classes of tests."""
    roots: tuple[str, ...] = ()
    """Folders from which modules were imported."""
    modules: tuple[str, ...] = ()
    """Names of modules that were imported from outside the tree."""
    missing: tuple[str, ...] = ()
    """Names of modules that were looked for and not found."""


NO_TRACE = Trace()


def read_trace(report: Path) -> Trace:
    """What the guard recorded beside the report of a test command; facts that cannot be read are left out."""
    reader = GuardReader(guard_folder(report), max_bytes=MAX_BYTES)
    facts: dict[str, set[tuple[str, ...]]] = {}
    try:
        for name in reader.names("*.trace"):
            for line in reader.read(name).decode("utf-8", "replace").splitlines():
                kind, *values = _parse_fact(line)
                facts.setdefault(kind, set()).add(tuple(values))
    except (OSError, TooMuchError):
        facts.setdefault("", set())

    def first(kind: str) -> set[str]:
        return {values[0] for values in facts.get(kind, ()) if values}

    loaded = {values for kind in ("loaded", "tool") for values in facts.get(kind, ())}
    return Trace(
        # Without code that was loaded, too, such as a generated module.
        reads=tuple(sorted(values for values in facts.get("read", ()) if values[:1] not in loaded))[
            :MAX_FACTS
        ],
        scripts=_limit_facts(first("script") | (first("tool") - first("loaded"))),
        parts=_limit_facts(first("part")),
        roots=_limit_facts(first("root")),
        modules=_limit_facts(first("module") - PYTHONS_OWN),
        missing=_limit_facts(first("missing")),
    )


def _parse_fact(line: str) -> list[str]:
    try:
        values = json.loads(line[:MAX_LINE])
    except (ValueError, RecursionError):
        return [""]
    sound = isinstance(values, list) and values and all(isinstance(value, str) for value in values)
    return [value.replace("\\", "/") for value in values] if sound else [""]


def _limit_facts(values: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(values)[:MAX_FACTS])


class Deciding(Struct, frozen=True, kw_only=True, dict=True):
    """The files of a base that decide whether its tests pass, and the names that no new file may take."""

    commands: tuple[str, ...]
    paths: frozenset[str]
    """The files of the base."""
    read: Read
    """The text of one of them."""
    trace: Trace = NO_TRACE

    @cached_property
    def files(self) -> frozenset[str]:
        """The scripts of the test commands, and what the trace shows to decide; without tests, and what names say."""
        found = self._scripts | self._read_by_tests_and_product[0]
        if not self._offers_plugin:
            found |= {path for path in self.trace.parts if not self.holds_tests(path)}
        return frozenset(
            path
            for path in found & self.paths
            if not is_named_test(path) and posixpath.basename(path) not in MIXED
        )

    def decides(self, path: str) -> bool:
        """Whether a file that exists at the base, or is created, belongs to the scripts, data or helpers of tests."""
        if path in self.files:
            return True
        if path not in self.paths:
            return self._decides_anew(path)
        is_product_data = path in self._read_by_tests_and_product[1]
        if is_test_data(path) and not is_product_data:
            return True
        if is_code(path):
            if is_test_path(path):
                return is_test_support(path, self.read(path), self.paths)
            return not self._offers_plugin and self._helps_tests(path)
        return self._is_beside_tests(path) or (not is_product_data and self._is_named_by_tests(path))

    def _decides_anew(self, path: str) -> bool:
        """Whether a new file does."""
        helps = is_test_path(path) and (
            _is_one_of(path, self.trace.missing) if is_code(path) else self._is_beside_tests(path)
        )
        return (
            helps
            or _folder_and_suffix(path) in self._data_folders_and_suffixes
            or _is_one_of(path, self._optional_modules)
            or path in scripts_of(self.commands, self.paths | {path}, self.read)
        )

    def holds_tests(self, path: str) -> bool:
        """Whether a file outside of tests has classes of tests in it that the baseline loaded, and tests."""
        return path in self.trace.parts and re.search(HOLDS_TESTS, self.read(path)) is not None

    def hides(self, path: str, gone: Collection[str] = ()) -> str:
        """What a new file of this name would be loaded in place of, in words; "" if of nothing. `gone` are files of the
        base that no longer exist.
        """
        if path in self.paths:
            return ""
        others = self.paths - set(gone)
        if path.endswith(SCRIPT_SUFFIXES):
            return _hidden_script(path, others) or self._hidden_data(path, others)
        if path.endswith(".py") and not UNSHADOWED.search(path):
            return self._hidden_module(path, others)
        return ""

    def _hidden_module(self, path: str, others: Collection[str]) -> str:
        place = path.removesuffix("/__init__.py").removesuffix(".py")
        folder, _, name = place.rpartition("/")
        beside = f"{place}.py"
        if path != beside and beside in others:
            return beside
        roots = frozenset({*IMPORT_ROOTS, *self.trace.roots, *self._test_roots})
        if folder not in roots:
            return self._hidden_deeper(place, roots, others)
        if path == beside and f"{place}/__init__.py" not in others:
            inside = (one for one in sorted(others) if one.startswith(f"{place}/") and one.endswith(".py"))
            if found := next(inside, ""):
                return found
        if name in PYTHONS_OWN:
            return f"Python's own module {name}"
        if name in self.trace.modules or shadows_runner(path):
            return f"the installed module {name}"
        taken = (
            f"{root}/{name}{end}".removeprefix("/")
            for root in roots - {folder}
            for end in (".py", "/__init__.py")
        )
        return next((other for other in sorted(taken) if other in others), "")

    def _hidden_deeper(self, place: str, roots: frozenset[str], others: Collection[str]) -> str:
        """The file of tests that is loaded from another root, under the same name, below folders that are no packages."""
        for root in sorted(roots):
            inner = place.removeprefix(f"{root}/") if root else place
            if root and inner == place:
                continue
            for other in sorted(roots - {root}):
                at = f"{other}/{inner}".removeprefix("/")
                folders = [inner[:end] for end, mark in enumerate(inner) if mark == "/"]
                if any(f"{other}/{one}/__init__.py".removeprefix("/") in others for one in folders):
                    continue
                for found in (f"{at}.py", f"{at}/__init__.py"):
                    if at != place and found in others and (_is_tests(found) or self.decides(found)):
                        return found
        return ""

    def _hidden_data(self, path: str, others: Collection[str]) -> str:
        """The JSON file that code loads by its name without an ending, which finds the new script first."""
        stem = _import_name(path)
        loaded = re.compile(rf"[/\"'`]{re.escape(posixpath.basename(stem))}[\"'`]")
        taken = f"{stem}.json"
        return taken if taken in others and any(map(loaded.search, self._test_and_product_text)) else ""

    @cached_property
    def _optional_modules(self) -> frozenset[str]:
        """The names of modules that tests try to import, and do without."""
        files = [path for path in sorted(self.paths) if path.endswith(".py") and _is_tests(path)]
        return frozenset(
            name
            for path in files[:MAX_TEXTS]
            for name in _tried_imports(self.read(path), posixpath.dirname(path))
        )

    def _helps_tests(self, path: str) -> bool:
        """Whether tests import the module, no product code does, and it judges or uses a runner."""
        name = re.escape(posixpath.basename(path).partition(".")[0])
        if path.endswith(".py"):
            helps, loads = HELPS, rf"(?m)^\s*(?:from|import)\s[^\n#]*\b{name}\b"
        elif path.endswith(SCRIPT_SUFFIXES) and HELPERS.search(path):
            helps, loads = SCRIPT_HELPS, rf"[/\"'`]{name}(?:\.\w+)?[\"'`]"
        else:
            return False
        tests, product = self._test_and_product_text
        return (
            helps.search(self.read(path)) is not None
            and re.search(loads, tests) is not None
            and re.search(loads, product) is None
        )

    def _is_beside_tests(self, path: str) -> bool:
        """Whether the file is in a folder for tests that holds some; `spec/` may hold descriptions of the product."""
        folder = folder_of_tests(path)
        return folder != "" and any(one.startswith(folder) and is_test_module(one) for one in self.paths)

    def _is_named_by_tests(self, path: str) -> bool:
        """Whether the text of a test has the file's name, and that of no product code: a program that tests start may read
        it.
        """
        name = posixpath.basename(path)
        tests, product = self._test_and_product_text
        return name not in MIXED and name in tests and name not in product

    @cached_property
    def _test_and_product_text(self) -> tuple[str, str]:
        """The texts of the tests and of product code: of as many files as can be read in a second."""
        code = [path for path in sorted(self.paths) if is_code(path)]
        tests = [path for path in code if is_test_path(path)]
        product = [path for path in code if not is_test_path(path)]
        return "\n".join(map(self.read, tests[:MAX_TEXTS])), "\n".join(map(self.read, product[:MAX_TEXTS]))

    @cached_property
    def _test_roots(self) -> frozenset[str]:
        """The folders that pytest puts before all others: of each test, the lowest that is not a package."""
        found = set()
        for path in self.paths:
            if path.endswith(".py") and (is_test_module(path) or path.rpartition("/")[2] == "conftest.py"):
                folder = posixpath.dirname(path)
                while folder and f"{folder}/__init__.py" in self.paths:
                    folder = posixpath.dirname(folder)
                found.add(folder)
        return frozenset(found)

    @cached_property
    def _scripts(self) -> frozenset[str]:
        return frozenset({*scripts_of(self.commands, self.paths, self.read), *self.trace.scripts})

    @cached_property
    def _read_by_tests_and_product(self) -> tuple[frozenset[str], frozenset[str]]:
        """(what the tests alone read, what the product reads)."""
        product: set[str] = set()
        tests: set[str] = set()
        for path, *chain in self.trace.reads:
            if not chain:
                (product if is_test_path(path) else tests).add(path)
            elif _is_tests(chain[0]) or chain[0] in self._scripts or self._is_read_for(path, chain):
                tests.add(path)
            else:
                product.add(path)
        return frozenset(tests - product), frozenset(product)

    def _is_read_for(self, path: str, chain: list[str]) -> bool:
        """Whether a test among the files of `chain` names the file, or its folder, and the code that opened it does not, nor
        is beside it.
        """
        folder, _, name = path.rpartition("/")
        home = posixpath.dirname(chain[0])
        if home and f"{folder}/".startswith(f"{home}/"):
            return False
        opening = self.read(chain[0])
        tests = [self.read(one) for one in chain[1:] if _is_tests(one)]
        names = [name, *([posixpath.basename(folder)] if folder else [])]
        return any(any(one in text for text in tests) and one not in opening for one in names)

    @cached_property
    def _data_folders_and_suffixes(self) -> frozenset[tuple[str, str]]:
        """Folder and suffix of the data that tests read: new files there may be read, too."""
        return frozenset(
            _folder_and_suffix(path)
            for path in self._read_by_tests_and_product[0]
            if "." in posixpath.basename(path) and not is_code(path)
        )

    @cached_property
    def _offers_plugin(self) -> bool:
        """Whether the product is itself a plugin of pytest, so that its parts of tests are the product."""
        return any("pytest11" in self.read(name) for name in ("pyproject.toml", "setup.cfg", "setup.py"))


def deciding_files(
    commands: Iterable[str], paths: Collection[str], data: Callable[[str], bytes | None], trace: Trace
) -> Deciding:
    """The deciding files of a base with these `paths`; `data` gives a file's bytes."""

    def read(path: str) -> str:
        found = data(path) if path in paths else None
        return found.decode("utf-8", "replace") if found is not None else ""

    return Deciding(commands=tuple(commands), paths=frozenset(paths), read=read, trace=trace)


def _tried_imports(text: str, folder: str) -> Iterator[str]:
    """The modules whose absence the text of a Python file in `folder` takes care of."""
    try:
        tree = ast.parse(text) if "except" in text else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Try) or not any(map(_takes_absence, node.handlers)):
            continue
        for statement in node.body:
            if isinstance(statement, ast.Import):
                yield from (one.name for one in statement.names)
            elif isinstance(statement, ast.ImportFrom):
                parts = folder.split("/")
                above = parts[: len(parts) - statement.level + 1] if statement.level else []
                module = ".".join(filter(None, (*above, statement.module)))
                yield module
                yield from (f"{module}.{one.name}" for one in statement.names)


def _takes_absence(handler: ast.ExceptHandler) -> bool:
    named = ast.walk(handler.type) if handler.type is not None else ()
    names = {node.id for node in named if isinstance(node, ast.Name)}
    return handler.type is None or not ABSENT.isdisjoint(names)


def _is_one_of(path: str, modules: Iterable[str]) -> bool:
    """Whether the file is a Python module of one of these names, from whatever folder they begin."""
    place = path.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
    return path.endswith(".py") and any(place == name or place.endswith(f".{name}") for name in modules)


def _is_tests(path: str) -> bool:
    return is_test_path(path) or is_test_configuration(path)


def _folder_and_suffix(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, posixpath.splitext(name)[1]


def _hidden_script(path: str, others: Collection[str]) -> str:
    """The script that is imported under the same name as the new one; declarations are not."""
    stem = _import_name(path)
    if path.endswith(".d.ts") or not stem:
        return ""
    # A file is preferred to a folder of its name.
    names = [stem] if stem.endswith("/index") else [stem, f"{stem}/index"]
    taken = (f"{name}{suffix}" for name in names for suffix in SCRIPT_SUFFIXES)
    return next((other for other in taken if other in others and not other.endswith(".d.ts")), "")


def _import_name(path: str) -> str:
    return next((path.removesuffix(suffix) for suffix in SCRIPT_SUFFIXES if path.endswith(suffix)), "")
