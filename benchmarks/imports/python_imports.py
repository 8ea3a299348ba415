"""What Python's own import machinery finds for every import of the files that are named on standard input.

    python -I python_imports.py FOLDER ROOT...

prints `[file, target, name or "", what was found]` as one line of JSON each; nothing of the project is run. Packages
are walked through `PathFinder`, whose path is: the folder that the file's outermost package stands in (a script's own
folder, which is also where pytest imports from), the given roots of the project, Python's own library.
"""

import ast
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.machinery import BuiltinImporter, FrozenImporter, ModuleSpec, PathFinder
from pathlib import Path

Item = tuple[str, str]
"""target with its leading dots, and the name that is taken or ""."""


def main() -> None:
    """Read paths, print findings."""
    warnings.simplefilter("ignore")
    top = Path(sys.argv[1]).resolve()
    roots = [str(top / root) for root in sys.argv[2:]]
    library = [path for path in sys.path if path and path != str(Path(__file__).parent)]
    for path in sys.stdin.read().split("\0"):
        for target, name in items(top / path):
            found = resolve(top / path, target, name, (*roots, *library))
            inside = found is not None and Path(found).is_relative_to(top)
            print(
                json.dumps(
                    [path, target, name, str(Path(found).relative_to(top)) if found and inside else ""]
                )
            )


def items(path: Path) -> list[Item]:
    """The imports of the file, in order, each once; none where Python cannot read it."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return []
    return list(dict.fromkeys(item for node in ast.walk(tree) for item in _of_statement(node)))


def _of_statement(node: ast.AST) -> Iterator[Item]:
    if isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        target = "." * node.level + (node.module or "")
        yield from ((target, alias.name) for alias in node.names)


def resolve(path: Path, target: str, name: str, roots: tuple[str, ...]) -> str | None:
    """The file of the submodule that is taken, else that of the module."""
    parts = target.lstrip(".")
    level = len(target) - len(parts)
    if level:
        folder = path.parents[level - 1]
        init = folder / "__init__.py"
        own = ModuleSpec(folder.name, None, origin=str(init) if init.exists() else None, is_package=True)
        own.submodule_search_locations = [str(folder)]
        found = _walk(own, parts.split(".") if parts else [])
    else:
        first, *rest = parts.split(".")
        found = _walk(_top(first, (str(root_of(path)), *roots)), rest)
    if found is None:
        return None
    submodule = None if name in {"", "*"} else _walk(found, [name])
    return (None if submodule is None else submodule.origin) or found.origin


def root_of(path: Path) -> Path:
    """Where pytest, or a script's start, puts the file's imports."""
    folder = path.parent
    while (folder / "__init__.py").exists():
        folder = folder.parent
    return folder


def _walk(spec: ModuleSpec | None, parts: Sequence[str]) -> ModuleSpec | None:
    for part in parts:
        if spec is None or spec.submodule_search_locations is None:
            return None
        places = spec.submodule_search_locations
        spec = _find(part, tuple(getattr(places, "_path", places)))
    return spec


def _top(name: str, path: tuple[str, ...]) -> ModuleSpec | None:
    return BuiltinImporter.find_spec(name) or FrozenImporter.find_spec(name) or _find(name, path)


@cache
def _find(name: str, path: tuple[str, ...]) -> ModuleSpec | None:
    return PathFinder.find_spec(name, list(path))


if __name__ == "__main__":
    main()
