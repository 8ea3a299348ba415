"""Imports as they are written, resolved to files of the repository."""

import posixpath
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import PurePosixPath

from clean_room_agent.indexer.languages.parsed import RawImport

PYTHON = (".py", ".pyi")
USUAL_ROOTS = ("", "src", "lib")
MAX_HOPS = 5
"""How many packages a re-export is followed through."""
ECMASCRIPT = (".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json")
SWAPS = {
    ".js": (".ts", ".tsx", ".d.ts"),
    ".jsx": (".tsx",),
    ".mjs": (".mts", ".d.mts"),
    ".cjs": (".cts", ".d.cts"),
}
"""What TypeScript calls by the suffix of what it will be compiled to."""
Edge = tuple[str, str, str]
"""source path, target path, import or type_ref."""


def resolve(
    sources: Iterable[str], paths: Iterable[str], imports: Callable[[str], Sequence[RawImport]]
) -> tuple[Edge, ...]:
    """What the source files import from the repository, sorted; where a file is imported both ways, `import` counts.

    Args:
        sources: the files to resolve.
        paths: all files of the repository.
        imports: a file's imports, as written; also asked for packages on the way.
    """
    all_paths = frozenset(paths)
    python, ecmascript = _Python(all_paths, imports), _EcmaScript(all_paths)
    edges: dict[tuple[str, str], str] = {}
    for source in sorted(set(sources)):
        resolver = python if source.endswith(PYTHON) else ecmascript
        for raw in imports(source):
            for target in resolver.targets(source, raw):
                if target != source and edges.get((source, target)) != "import":
                    edges[source, target] = raw.kind
    return tuple(sorted((source, target, kind) for (source, target), kind in edges.items()))


class _Python:
    """Modules, packages (also without `__init__`), `src` layouts, and names re-exported by packages."""

    def __init__(self, paths: frozenset[str], imports: Callable[[str], Sequence[RawImport]]) -> None:
        self._paths = paths
        self._imports = imports
        modules = [path for path in paths if path.endswith(PYTHON)]
        self._folders = {str(parent) for path in modules for parent in PurePosixPath(path).parents}
        self._root_of: Callable[[str], str] = cache(self._find_root)
        self._tops = self._collect_tops(modules)

    def targets(self, source: str, raw: RawImport) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._targets(source, raw, MAX_HOPS)))

    def _targets(self, source: str, raw: RawImport, hops: int) -> list[str]:
        base = self._base(source, raw.target)
        if base is None:
            return []
        module = self._file(base)
        if not raw.names:
            return [module] if module else []
        targets: list[str] = []
        for name in raw.names:
            submodule = self._file(f"{base}/{name}") if module is None or _is_package(module) else None
            if submodule is not None:
                targets.append(submodule)
            elif module is not None:
                targets.append(module)
                targets.extend(self._through(module, name, hops))
        return targets

    def _through(self, module: str, name: str, hops: int) -> list[str]:
        """Where a package takes a name from that it offers."""
        if hops == 0 or not _is_package(module):
            return []
        found = (raw for raw in self._imports(module) if name in raw.names)
        taken = (RawImport(target=raw.target, names=(name,), kind=raw.kind) for raw in found)
        return [target for raw in taken for target in self._targets(module, raw, hops - 1)]

    def _base(self, source: str, target: str) -> str | None:
        """The path without suffix that the module's name stands for, where anything is there."""
        name = target.lstrip(".")
        parts = name.split(".") if name else []
        level = len(target) - len(name)
        if level:
            folder = posixpath.dirname(source).split("/") if "/" in source else []
            if level - 1 > len(folder):
                return None
            return "/".join([*folder[: len(folder) - level + 1], *parts]) or "."
        for root in self._roots(source, parts[0]):
            base = "/".join([root, *parts] if root else parts)
            if self._file(base) is not None or base in self._folders:
                return base
        return None

    def _roots(self, source: str, top: str) -> list[str]:
        own = self._root_of(posixpath.dirname(source))
        elsewhere = self._tops.get(top, ())
        unique = elsewhere if len(elsewhere) == 1 and top not in sys.stdlib_module_names else ()
        return list(dict.fromkeys((own, *USUAL_ROOTS, *unique)))

    def _file(self, base: str) -> str | None:
        prefix = "" if base == "." else f"{base}/"
        candidates = [f"{prefix}__init__{suffix}" for suffix in PYTHON]
        if base != ".":
            candidates += [f"{base}{suffix}" for suffix in PYTHON]
        return next((path for path in candidates if path in self._paths), None)

    def _find_root(self, folder: str) -> str:
        """The folder that the outermost package around `folder` stands in; `folder` itself where it is no package."""
        while folder and any(f"{folder}/__init__{suffix}" in self._paths for suffix in PYTHON):
            folder = posixpath.dirname(folder)
        return folder

    def _collect_tops(self, modules: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        tops: dict[str, set[str]] = {}
        for path in modules:
            root = self._root_of(posixpath.dirname(path))
            inside = path[len(root) :].lstrip("/")
            tops.setdefault(inside.split("/")[0].partition(".")[0], set()).add(root)
        return {top: tuple(sorted(roots)) for top, roots in tops.items()}


class _EcmaScript:
    """Relative specifiers: with and without suffix, with the suffix of the compiled file, and folders with an index."""

    def __init__(self, paths: frozenset[str]) -> None:
        self._paths = paths

    def targets(self, source: str, raw: RawImport) -> tuple[str, ...]:
        specifier = raw.target.partition("?")[0]
        if not specifier.startswith(("./", "../")) and specifier not in {".", ".."}:
            return ()
        base = posixpath.normpath(posixpath.join(posixpath.dirname(source), specifier))
        found = next((path for path in _candidates(base) if path in self._paths), None)
        return () if found is None else (found,)


def _candidates(base: str) -> list[str]:
    stem, suffix = posixpath.splitext(base)
    index = "index" if base == "." else f"{base}/index"
    return [
        base,
        *(stem + swap for swap in SWAPS.get(suffix, ())),
        *(base + suffix for suffix in ECMASCRIPT),
        *(index + suffix for suffix in ECMASCRIPT),
    ]


def _is_package(path: str) -> bool:
    return posixpath.basename(path).startswith("__init__.")
