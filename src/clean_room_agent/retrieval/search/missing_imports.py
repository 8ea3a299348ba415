"""Names that a Python test file imports and the repository does not define yet: why the file cannot be loaded."""

import ast
import posixpath
import re
from collections.abc import Iterator

from clean_room_agent.retrieval.context_files import FileText
from clean_room_agent.retrieval.stage_source import RepositorySource

MAX_FILES_MEANT = 8
"""Of the files that a module may be."""


def missing_imports(text: FileText, source: RepositorySource) -> frozenset[str]:
    """The names that a Python file imports from this repository, where the module or the name does not exist.

    Imports from other packages are taken to exist. Empty for a file in another language.

    Raises:
        RepositoryError: an imported file is not what was indexed.
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
                if _is_ours(one.name, source) and not _files(one.name.replace(".", "/"), source):
                    yield (one.asname or one.name).partition(".")[0]
        case ast.ImportFrom(module=module, names=names, level=level):
            if level == 0 and not _is_ours(module or "", source):
                return
            place = _place(folder, level, module or "")
            files = _files(place, source)
            for one in names:
                if one.name != "*" and not _has(place, files, one.name, source):
                    yield one.asname or one.name
        case _:
            pass


def _place(folder: str, level: int, module: str) -> str:
    """The module's path without suffix; a relative import is resolved from the file's folder."""
    above = [".."] * (level - 1)
    base = posixpath.normpath(posixpath.join(folder, *above)) if level else ""
    return posixpath.join("" if base == "." else base, module.replace(".", "/")).strip("/")


def _is_ours(module: str, source: RepositorySource) -> bool:
    """Whether the repository has the module's top-level package, at its root or below src, as a folder or a file."""
    root = module.partition(".")[0]
    begins = (f"{root}/", f"src/{root}/")
    return bool(root) and any(
        path.endswith(".py") and (path.startswith(begins) or path in {f"{root}.py", f"src/{root}.py"})
        for path in source.paths()
    )


def _files(place: str, source: RepositorySource) -> tuple[str, ...]:
    """The files that a module of this path may be."""
    ways = (f"{place}.py", f"{place}/__init__.py", f"{place}.pyi") if place else ("__init__.py",)
    return tuple(path for way in ways for path in source.resolve_path(way, most=MAX_FILES_MEANT))


def _has(place: str, files: tuple[str, ...], name: str, source: RepositorySource) -> bool:
    """Whether the module defines the name, or the package has a module of that name."""
    inner = f"{place}/{name}" if place else name
    if _files(inner, source) or any(f"/{inner}/" in f"/{path}" for path in source.paths()):
        return True
    return bool(files) and (
        bool(source.find_symbols(name)) or any(_mentions(path, name, source) for path in files)
    )


def _mentions(path: str, name: str, source: RepositorySource) -> bool:
    row = source.file(path)
    text = source.files.read(path, row.content_hash) if row is not None else None
    return (
        isinstance(text, FileText) and re.search(rf"\b{re.escape(name)}\b", "\n".join(text.lines)) is not None
    )
