"""Which definitions of the repository a report's calls mean, and how a test imports them.

humanize.ordinal(3)      the function `ordinal` of a file of the package `humanize`: `ordinal(3)`, imported
Stack(3).pop()           the class `Stack`
parse("1")               two files define it, and the report names one of them, or only one has tests
"""

import posixpath
import re
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from clean_room_agent.artifacts.goals import NamedDefinition
from clean_room_agent.execute.goals.expressions import (
    PYTHON_BUILTINS,
    Expressions,
    ScriptExpressions,
    free_names_of,
    python_module,
    standard_imports,
)
from clean_room_agent.paths import is_test_file

SOURCE_FOLDERS = ("src/", "lib/", "python/")
IMPORTED = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b|import[ \t]+([\w.]+))", re.MULTILINE)
CALLABLE = frozenset({"function", "class"})
SCRIPTS = ScriptExpressions.suffixes


class Known(Struct, frozen=True, kw_only=True):
    """What a report's names mean."""

    text: str
    """The report, with modules taken off the calls of what is imported by its own name."""
    names: Mapping[str, NamedDefinition]
    """The definition of each name that calls begin with."""

    language: Expressions
    in_tests: frozenset[str] = frozenset()
    """What the file of tests that exercises them binds: tests of their own have it without an import."""

    def usable(self, expression: str, setup: tuple[str, ...]) -> bool:
        """Whether the expression, after these statements, needs nothing but what is known, and something of that."""
        free = self.language.free_names(expression)
        bound: set[str] = set()
        used = set(free or ())
        for statement in setup:
            binds, uses, _ = self.language.effects(statement)
            bound |= binds
            used |= uses
        used -= self.language.own_names
        needed = used - bound - self.names.keys() - self.language.importable.keys() - self.in_tests
        return free is not None and not needed and bool(used & self.names.keys())


def lookups(called: Sequence[str]) -> tuple[str, ...]:
    """The names to look up in the index for these called names: each of their parts that may be a definition's."""
    found: dict[str, None] = {}
    for name in called:
        parts = name.split(".")
        found.update(dict.fromkeys((parts[0], parts[-1], *parts[1:-1])))
    return tuple(name for name in found if name not in PYTHON_BUILTINS or name[0].isupper())


def resolve(
    text: str,
    called: Sequence[str],
    definitions: Sequence[NamedDefinition],
    language: Expressions,
    passed: Sequence[str] = (),
) -> Known:
    """What the called names mean, as far as only one definition can be meant; and those that are passed on, such as `double`
    in `apply(double, 2)`, where they are functions or classes.
    """
    top: dict[str, list[NamedDefinition]] = {}
    for one in definitions:
        if "." not in one.name and one.kind in {*CALLABLE, "variable"}:
            top.setdefault(one.name, []).append(one)
    names: dict[str, NamedDefinition] = {}
    for name in called:
        parts = name.split(".")
        own = meant(top.get(parts[0], ()), text, ())
        if own is not None and not (len(parts) > 1 and _is_module(parts[0], own, top.get(parts[1], ()))):
            names[parts[0]] = own
            continue
        for at in range(1, len(parts)):
            inner = meant(top.get(parts[at], ()), text, parts[:at])
            if inner is not None and _has_module(inner.path, parts[:at]):
                prefix = ".".join(parts[:at])
                text = re.sub(
                    rf"(?<![\w.]){re.escape(prefix)}\.{re.escape(parts[at])}(?=[\w.]*\()", parts[at], text
                )
                names[parts[at]] = inner
                break
    for name in passed:
        own = meant([one for one in top.get(name, ()) if one.kind in CALLABLE], text, ())
        if own is not None:
            names.setdefault(name, own)
    return Known(text=text, names=names, language=language)


def _is_module(name: str, own: NamedDefinition, inner: Sequence[NamedDefinition]) -> bool:
    """Whether the name is rather that of a module, as in `slugify.slugify(…)`, where one is in a file of that name."""
    return own.name == name and any(_has_module(one.path, [name]) for one in inner)


def meant(found: Sequence[NamedDefinition], text: str, modules: Sequence[str]) -> NamedDefinition | None:
    """The one of several definitions of one name that is meant: that in a module that is named before it or in the text, or
    the only one that is no variable, is not defined by tests, and is used by them.
    """
    if modules:
        found = [one for one in found if _has_module(one.path, modules)]
    by_file: dict[str, NamedDefinition] = {}
    for one in found:
        by_file.setdefault(one.path, one)
    left = list(by_file.values())
    if len(left) > 1:
        named = [one for one in left if _names_file(text, one.path)]
        left = named or left
    for preferred in (_is_of_the_product, _is_no_variable, _is_tested):
        if len(left) > 1:
            left = [one for one in left if preferred(one)]
    return left[0] if len(left) == 1 else None


def _is_of_the_product(one: NamedDefinition) -> bool:
    return not is_test_file(one.path)


def _is_no_variable(one: NamedDefinition) -> bool:
    return one.kind != "variable"


def _is_tested(one: NamedDefinition) -> bool:
    return bool(one.test_files)


def _names_file(text: str, path: str) -> bool:
    stem = posixpath.splitext(posixpath.basename(path))[0]
    plain = posixpath.splitext(path)[0].replace("/", ".")
    modules = "|".join(map(re.escape, dict.fromkeys((module_of(path, ()), plain))))
    name = re.escape(posixpath.basename(path))
    found = rf"(?<![\w.])(?:{modules})(?!\w)|\b{name}(?!\w)|\b{re.escape(stem)}\.(?=\w)"
    return path in text or re.search(found, text) is not None


def _has_module(path: str, modules: Sequence[str]) -> bool:
    """Whether the file is the module, or in the package, that the dotted name ends in."""
    parts = posixpath.splitext(path)[0].split("/")
    wanted = list(modules)
    return any(parts[at : at + len(wanted)] == wanted for at in range(len(parts) - len(wanted) + 1))


def module_of(path: str, test_texts: Collection[str]) -> str:
    """The dotted name of a Python file's module, as the tests import it, or else by its path."""
    plain = path.removesuffix(".py").removesuffix("/__init__")
    for text in test_texts:
        found = [str(first or second) for first, second in IMPORTED.findall(text)]
        for name in found:
            if f"/{plain}".endswith("/" + name.replace(".", "/")):
                return name
    for folder in SOURCE_FOLDERS:
        if plain.startswith(folder):
            plain = plain.removeprefix(folder)
            break
    return plain.replace("/", ".")


def python_imports(
    code: Sequence[str], names: Mapping[str, NamedDefinition], test_texts: Collection[str]
) -> tuple[str, ...]:
    """The import statements for what Python code uses: definitions of the repository, and of the standard library."""
    used: set[str] = set()
    standard: dict[str, str] = {}
    for source in code:
        tree = python_module(source)
        if tree is not None:
            used |= free_names_of(tree)
            standard = standard_imports(tree) | standard
    known = {
        name: f"from {module_of(names[name].path, test_texts)} import {name}" for name in used & names.keys()
    }
    return tuple(statement for _, statement in sorted((standard | known).items()))


def without_imports(setup: Sequence[str], names: Collection[str], language: Expressions) -> tuple[str, ...]:
    """The statements without imports of what is known, which the test has its own for."""
    kept = []
    for source in setup:
        if re.match(r"(?:from|import)\s", source.strip()):
            binds, _, _ = language.effects(source)
            if binds & set(names):
                continue
        kept.append(source)
    return tuple(kept)
