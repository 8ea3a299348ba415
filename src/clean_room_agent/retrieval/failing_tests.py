"""Finds named tests in the code, with the fixtures, hooks and helpers they use, and their missing imports."""

import ast
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache

from msgspec import Struct, structs

from clean_room_agent.artifacts.context import TaskQuery
from clean_room_agent.languages.outline import DeclaredName, Outline, Span, TestCall
from clean_room_agent.languages.test_names import (
    SEPARATOR,
    file_part,
    files_meant,
    is_of_file,
    split_pytest_id,
    titles_of,
    unnumbered,
)
from clean_room_agent.paths import is_test_file
from clean_room_agent.retrieval.mentions import unique
from clean_room_agent.retrieval.stage_source import FileText, RepositorySource
from clean_room_agent.syntax import outline_of

MAX_TESTS = 12
"""Tests looked up, in the order they are named."""
MAX_FILES = 10
"""Files searched for a test whose name does not say which file it is in."""
MAX_HELPERS = 12
"""For each test; those that it uses itself come before those that they use."""
HELPER_LEVELS = 2
"""What the test uses, and what that uses; what is further away says little about the test."""
MAX_HELPER_LINES = 80
"""A longer fixture or helper is left out."""
MAX_CONFTESTS = 8
MAX_FILES_MEANT = 8
"""Of the files that a module may be."""


class HelperCode(Struct, frozen=True, kw_only=True):
    """A fixture, hook, helper or constant that a test uses: its lines (1-based, inclusive, with decorators)."""

    path: str
    name: str
    """As it is declared; "" for a hook."""
    start_line: int
    end_line: int
    text: str


class TestCode(HelperCode, frozen=True, kw_only=True):
    """A test, named as the index knows it, or by its titles as the runner joins them, and the helpers that it uses."""

    helpers: tuple[HelperCode, ...] = ()
    """In the order of their files and lines, its own file first; fixtures of conftest.py files after it."""

    __test__ = False


def file_of_test(name: str, source: RepositorySource) -> str:
    """The indexed file that a test's name contains; "" if there is none."""
    for path in files_meant(name):
        if ("/" in path or "." in path) and (found := source.resolve_path(path, most=1)):
            return found[0]
    return ""


def find_tests(query: TaskQuery, source: RepositorySource) -> tuple[TestCode, ...]:
    """The named tests that exist, without repeats, in the order they are named.

    Raises:
        RepositoryError: a test's file differs from what was indexed.
    """
    return find_named_tests(
        query.test_names, source, files=(*(frame.path for frame in query.frames), *query.paths)
    )


def find_named_tests(
    names: Iterable[str], source: RepositorySource, *, files: Iterable[str] = ()
) -> tuple[TestCode, ...]:
    """The first `MAX_TESTS` tests with these names; `files` are searched if a name does not say which file it is in.

    Raises:
        RepositoryError: a test's file differs from what was indexed.
    """
    finder = _Finder(source, tuple(unique(path for path in files if is_test_file(path)))[:MAX_FILES])
    found: dict[tuple[str, int], TestCode] = {}
    for name in names:
        if len(found) >= MAX_TESTS:
            break
        for code in finder.find(name):
            found.setdefault((code.path, code.start_line), code)
    return tuple(found.values())[:MAX_TESTS]


def find_declared_tests(
    names: frozenset[str], paths: Iterable[str], failing: Sequence[str], source: RepositorySource
) -> Iterator[tuple[str, str, int]]:
    """(path, titles, first line) of the tests in these files that a call declares, as in JavaScript, whose lines use one
    of the names, and which are none of the failing ones.
    """
    finder = _Finder(source, ())
    red = {unnumbered(part) for one in failing for part in (one, titles_of(one)) if part}
    for path in paths:
        outline = Outline() if path in red else finder.outline(path)
        for call in outline.calls:
            used = call.kind == "test" and not names.isdisjoint(outline.names_in(call.span))
            if used and all(_match_length(call.titles, one) < 0 for one in red):
                titles = SEPARATOR.join("...".join(title) for title in call.titles)
                yield path, " ".join(titles.split()), call.span.start_line


class _Finder:
    """Looks tests up; each file is read and parsed once."""

    def __init__(self, source: RepositorySource, files: Sequence[str]) -> None:
        self._source = source
        self._files = files
        self.outline = cache(self._outline)
        """The outline of an indexed file; empty if it is not text, or cannot be parsed."""

    def find(self, name: str) -> Iterator[TestCode]:
        """The tests of this name: several if it is not unique."""
        path = file_of_test(name, self._source)
        if path and is_of_file(name):
            yield from self._unloaded_tests(path)
            return
        titles = titles_of(name) if path and file_part(name) != name else name
        if "::" in file_part(name) or SEPARATOR not in name:
            definitions = list(self._python_definitions(name, path))
            yield from definitions
            if definitions or path:
                return
        for place, wanted in self._possible_places(path, titles):
            call = self._declaring_call(place, wanted)
            if call is not None:
                yield self._test_code(place, unnumbered(wanted), call.span)
                return

    def _unloaded_tests(self, path: str) -> Iterator[TestCode]:
        """In a file that could not be loaded, the tests that use an import which does not exist yet."""
        text = self._source.text(path)
        missing = frozenset() if text is None else missing_imports(text, self._source)
        for one in self._source.definitions_at(path) if missing else ():
            span = Span(start_line=one.start_line, end_line=one.end_line)
            if one.name.rpartition(".")[2].startswith("test") and self._uses_any_name(path, span, missing):
                yield self._test_code(path, one.name, span)

    def _uses_any_name(self, path: str, span: Span, names: frozenset[str]) -> bool:
        """Whether the lines use one of the names, directly or through a helper of their file."""
        outline = self.outline(path)
        used = (declared.span for _, declared in self._used_declarations([path], 0, span, span))
        return any(outline.names_in(one) & names for one in (span, *used))

    def _possible_places(self, path: str, titles: str) -> Iterator[tuple[str, str]]:
        """Files in which a test with these titles may be declared, and the titles to look for there.

        A test file may call a function in another file that declares tests; there, the first titles are missing.
        """
        if path:
            yield path, titles
        for place in self._files:
            if place != path:
                rest = titles
                while rest:
                    yield place, rest
                    rest = titles_of(rest)

    def _python_definitions(self, name: str, path: str) -> Iterator[TestCode]:
        """Python definitions, from the index; none if several match a bare name."""
        stated, qualified = split_pytest_id(name)
        symbols = self._source.find_symbols(qualified)
        if path and not stated:
            tail = name.split(".")
            symbols = next(
                (found for start in range(len(tail)) if (found := self._source.find_symbols(".".join(tail[start:])))), ()
            )  # fmt: skip
        elif len(symbols) > 1 and not stated:
            return
        anywhere = not stated and not path
        there = [one for one in symbols if anywhere or self._source.path_of(one.file_id) == path]
        for symbol in there or self._source.inherited_method(path, qualified):
            span = Span(start_line=symbol.start_line, end_line=symbol.end_line)
            yield self._test_code(self._source.path_of(symbol.file_id), symbol.qualified_name, span)

    def _declaring_call(self, path: str, titles: str) -> TestCall | None:
        """The call that declares the test with these titles: the one with the most fixed text, then the innermost."""
        calls = [call for call in self.outline(path).calls if call.kind == "test"]
        for wanted in unique((titles, unnumbered(titles))):
            fitting = [(fit, call) for call in calls if (fit := _match_length(call.titles, wanted)) >= 0]
            if fitting:
                return max(fitting, key=lambda entry: (entry[0], len(entry[1].titles)))[1]
        return None

    def _test_code(self, path: str, name: str, span: Span) -> TestCode:
        code = self._helper_code(path, name, span)
        return TestCode(**structs.asdict(code), helpers=tuple(self._helpers(path, span)))

    def _helpers(self, path: str, test: Span) -> list[HelperCode]:
        """What the test uses of its file, and what that uses; then fixtures of the conftest.py files above it."""
        chain = [path, *self._conftests(path)]
        found: dict[tuple[int, int], HelperCode] = {}
        named: set[str] = set()
        near = [(0, test), *((0, span) for span in self._hook_spans(path, test))]
        for _, span in near[1:]:
            found[0, span.start_line] = self._helper_code(path, "", span)
        for _ in range(HELPER_LEVELS):
            nearest, near = near, []
            for level, span in nearest:
                for place, declared in self._used_declarations(chain, level, span, test):
                    key = (place, declared.span.start_line)
                    known = declared.name in named or key in found
                    named.add(declared.name)
                    length = declared.span.end_line - declared.span.start_line + 1
                    if not known and length <= MAX_HELPER_LINES:
                        found[key] = self._helper_code(chain[place], declared.name, declared.span)
                        near.append((place, declared.span))
        return [found[key] for key in sorted(list(found)[:MAX_HELPERS])]

    def _used_declarations(
        self, chain: Sequence[str], level: int, span: Span, test: Span
    ) -> Iterator[tuple[int, DeclaredName]]:
        """(place in the chain, declaration) of what the lines use: of their own file, and fixtures of those above."""
        names = self.outline(chain[level]).names_in(span)
        for place in range(level, len(chain)):
            for declared in self.outline(chain[place]).declared:
                around = declared.scope.holds(test) if place == 0 else declared.scope.start_line == 1
                apart = place or not (declared.span.holds(test) or test.holds(declared.span))
                asked = declared.name in names or (
                    level == place == 0 and span is test and declared.automatic
                )
                if asked and around and apart and (place == level or declared.fixture):
                    yield place, declared

    def _hook_spans(self, path: str, test: Span) -> Iterator[Span]:
        for call in self.outline(path).calls:
            inside = call.span.holds(test) or test.holds(call.span)
            if call.kind == "hook" and call.scope.holds(test) and not inside:
                yield call.span

    def _helper_code(self, path: str, name: str, span: Span) -> HelperCode:
        first, last, file = span.start_line, span.end_line, self._source.text(path)
        text = "" if file is None else file.span(first, last)
        return HelperCode(path=path, name=name, start_line=first, end_line=last, text=text)

    def _conftests(self, path: str) -> Iterator[str]:
        folder = posixpath.dirname(path)
        for _ in range(MAX_CONFTESTS if path.endswith(".py") else 0):
            place = posixpath.join(folder, "conftest.py")
            if place != path and self._source.file(place) is not None:
                yield place
            if not folder:
                return
            folder = posixpath.dirname(folder)

    def _outline(self, path: str) -> Outline:
        text = self._source.text(path)
        return Outline() if text is None else _file_outline(text)


@lru_cache(maxsize=32)
def _file_outline(text: FileText) -> Outline:
    """The file's outline; empty if it cannot be parsed.

    Kept, because each stage of each pass asks about the same failing tests.
    """
    return outline_of("\n".join(text.lines).encode("utf-8", "replace"), text.path) or Outline()


def _match_length(titles: Sequence[Sequence[str]], wanted: str) -> int:
    """The length of the titles' fixed text if they match `wanted`, else -1."""
    pieces = [""]
    for place, title in enumerate(titles):
        pieces[-1] += (SEPARATOR if place else "") + title[0]
        pieces += title[1:]
    if len(pieces) == 1:
        return len(wanted) if pieces[0] == wanted else -1
    first, last = pieces[0], pieces[-1]
    if not (wanted.startswith(first) and wanted.endswith(last) and len(first) + len(last) <= len(wanted)):
        return -1
    place, end = len(first), len(wanted) - len(last)
    for piece in pieces[1:-1]:
        place = wanted.find(piece, place, end)
        if place < 0:
            return -1
        place += len(piece)
    return sum(map(len, pieces))


def missing_imports(text: FileText, source: RepositorySource) -> frozenset[str]:
    """Names that a Python file imports from this repository although the module or the name does not exist.

    Imports from other packages are assumed to exist. Empty for other languages.

    Raises:
        RepositoryError: an imported file differs from what was indexed.
    """
    try:
        tree = ast.parse("\n".join(text.lines)) if text.path.endswith(".py") else ast.Module([], [])
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    return frozenset(
        bound for node in ast.walk(tree) for bound in _missing_of(node, posixpath.dirname(text.path), source)
    )


def _missing_of(node: ast.AST, folder: str, source: RepositorySource) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            for one in names:
                if _is_ours(one.name, source) and not _module_files(one.name.replace(".", "/"), source):
                    yield (one.asname or one.name).partition(".")[0]
        case ast.ImportFrom(module=module, names=names, level=level):
            if level == 0 and not _is_ours(module or "", source):
                return
            place = _module_path(folder, level, module or "")
            files = _module_files(place, source)
            for one in names:
                if one.name != "*" and not _module_has_name(place, files, one.name, source):
                    yield one.asname or one.name
        case _:
            pass


def _module_path(folder: str, level: int, module: str) -> str:
    """The module's path without suffix; a relative import is resolved from the file's folder."""
    above = [".."] * (level - 1)
    base = posixpath.normpath(posixpath.join(folder, *above)) if level else ""
    return posixpath.join("" if base == "." else base, module.replace(".", "/")).strip("/")


def _is_ours(module: str, source: RepositorySource) -> bool:
    """Whether the repository has the module's top-level package, at its root or in src, as a folder or a file."""
    root = module.partition(".")[0]
    begins = (f"{root}/", f"src/{root}/")
    return bool(root) and any(
        path.endswith(".py") and (path.startswith(begins) or path in {f"{root}.py", f"src/{root}.py"})
        for path in source.paths()
    )


def _module_files(place: str, source: RepositorySource) -> tuple[str, ...]:
    """The files that a module with this path may be in."""
    ways = (f"{place}.py", f"{place}/__init__.py", f"{place}.pyi") if place else ("__init__.py",)
    return tuple(path for way in ways for path in source.resolve_path(way, most=MAX_FILES_MEANT))


def _module_has_name(place: str, files: tuple[str, ...], name: str, source: RepositorySource) -> bool:
    """Whether the module defines the name, or the package has a module of that name."""
    inner = f"{place}/{name}" if place else name
    if _module_files(inner, source) or any(f"/{inner}/" in f"/{path}" for path in source.paths()):
        return True
    return bool(files) and (
        bool(source.find_symbols(name)) or any(_mentions_name(path, name, source) for path in files)
    )


def _mentions_name(path: str, name: str, source: RepositorySource) -> bool:
    text = source.text(path)
    return text is not None and re.search(rf"\b{re.escape(name)}\b", "\n".join(text.lines)) is not None
