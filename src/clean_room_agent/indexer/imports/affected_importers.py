"""Finds files whose imports may resolve differently when a file is added or removed."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from clean_room_agent.indexer.imports.ecmascript import EcmaScriptModules
from clean_room_agent.indexer.imports.packages import LERNA, MANIFEST, PNPM
from clean_room_agent.indexer.imports.python import (
    PROJECT_FILES,
    SUFFIXES,
    PythonModules,
    above,
)
from clean_room_agent.indexer.imports.tsconfig import is_named

WORD = re.compile(r"[^./?#!\s]+")


class Reach(NamedTuple):
    """Files whose imports may resolve differently. A file is affected if any one of the three sets names it."""

    words: frozenset[str]
    """Those with one of these among `words_of` of an import."""
    folders: frozenset[str]
    """Those in or under one of these; "" is the repository's root."""
    everything: frozenset[str]
    """Those of these languages, "python" or "ecmascript"."""


def words_of(target: str, names: Iterable[str] = ()) -> frozenset[str]:
    """The words an import mentions: the parts of its target, and the names it takes from there."""
    return frozenset(WORD.findall(target)).union(names)


def is_config(path: str) -> bool:
    """Whether the content of the file, not just its existence, affects how JavaScript imports resolve."""
    return path.rpartition("/")[2] in {MANIFEST, PNPM, LERNA} or is_named(path)


def reach(
    path: str, *, python: PythonModules | None = None, ecmascript: EcmaScriptModules | None = None
) -> Reach:
    """Find which files are affected when `path` is added or removed or, if `is_config(path)`, when it changes.

    Args:
        path: the file.
        python: the modules among paths that were neither added nor removed; without it, the answer is less precise.
        ecmascript: the same for JavaScript and TypeScript.
    """
    folder, _, name = path.rpartition("/")
    is_python = path.endswith(SUFFIXES)
    words, folders, everything = set(WORD.findall(name)[:1]), set[str](), set[str]()
    if is_config(path) or (not is_python and (ecmascript is None or ecmascript.is_entry(path))):
        everything.add("ecmascript")
    if name.startswith("index."):
        folders.add(folder)
        words.update(_name(folder))
    if is_python or name in PROJECT_FILES:
        words.update(_python_words(path, python))
        is_init = _stem(name) == "__init__"
        if name in PROJECT_FILES or (is_init and (python is None or python.may_be_root(folder))):
            everything.add("python")
        if _stem(name) in {"__init__", "conftest"}:
            folders.add(folder)
    return Reach(frozenset(words), frozenset(folders), frozenset(everything))


def _python_words(path: str, python: PythonModules | None) -> Iterator[str]:
    folder, _, name = path.rpartition("/")
    yield _stem(name)
    if python is None:
        yield from folder.split("/")
        return
    if _stem(name) == "__init__":
        yield from _name(folder)
        yield from python.names_in(folder)
    if path.endswith(SUFFIXES):
        for around in above(folder):
            if python.names_in(around):
                break
            yield from _name(around)


def _stem(name: str) -> str:
    return name.rpartition(".")[0]


def _name(folder: str) -> Iterator[str]:
    yield from WORD.findall(folder.rpartition("/")[2])
