"""Resolves Python imports to files of the repository, with its source roots on the path."""

import sys
from collections.abc import Iterable, Sequence
from functools import cache, cached_property

from clean_room_agent.languages.base import WORD, ModuleRef, Reach, above

SUFFIXES = (".py", ".pyi")
PROJECT_FILES = frozenset({"pyproject.toml", "setup.py", "setup.cfg"})
"""Files that make their folder a root that modules are imported from."""
ROOT_FILES = (*SUFFIXES, "pyproject.toml", "setup.cfg")
SOURCE_FOLDERS = ("src", "lib", "python")
"""Folders below a project's own that usually are roots."""
LOADED_NAMES = (
    "__main__ _abc _ast _codecs _collections _collections_abc _functools _imp _io _operator _signal _sitebuiltins "
    "_sre _stat _string _symtable _thread _tracemalloc _warnings _weakref abc atexit builtins codecs errno "
    "faulthandler gc genericpath importlib io itertools marshal ntpath os posix posixpath pwd runpy site stat sys "
    "time zipimport"
)
LOADED = frozenset(LOADED_NAMES.split())
"""Built in, frozen or loaded before the first line of a script: no file is ever looked for."""


class PythonModules:
    """The modules of a repository, by the names under which its files can import them.

    An absolute name is looked up in this order:

    1. the file's own root: the folder that contains its outermost package, or else the file's own folder;
    2. the folders above it, nearest first, and `src`, `lib` and `python` in each. A plain module counts there only if
       the folder is the repository's root, a project's root, one of those three, or contains a `conftest.py`;
    3. anywhere else, if exactly one package or project's module has that name.

    A file takes precedence over a module of the standard library only if CPython would also prefer it: beside a script,
    or if it is the importing file's own top-level package.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(path for path in paths if path.endswith(ROOT_FILES))
        self._folders = _module_folders(self._paths)
        self._found = cache(self._resolve_target)
        self._submodule = cache(self._find_module)
        self._root_of = cache(self._outermost_root)
        self._search_roots = cache(self._list_roots)

    def find(self, source: str, target: str) -> ModuleRef | None:
        """Return the module that `target`, as written in `source` with any leading dots, refers to."""
        folder = source.rpartition("/")[0]
        found = self._found(folder, target)
        if found is not None and found.file == source and target[0] != "." and not self._in_package(folder):
            # A script that shares its name with a library imports the library, not itself.
            return self._resolve_target(folder, target, itself=source)
        return found

    def child(self, ref: ModuleRef, name: str) -> ModuleRef | None:
        """Return the submodule `name`; None if `ref` is not a package or has no such submodule."""
        folder = ref.folder
        if folder is None:
            return None
        return self._in_portions(ref, name) if ref.portions or ref.far else self._submodule(folder, name)

    def names_in(self, folder: str) -> frozenset[str]:
        """Names of the modules in the folder, and of its subfolders that contain modules."""
        return frozenset(self._names.get(folder, ()))

    @cached_property
    def _names(self) -> dict[str, set[str]]:
        names: dict[str, set[str]] = {}
        for path in self._paths:
            parent, _, name = path.rpartition("/")
            stem, dot, suffix = name.rpartition(".")
            if dot + suffix in SUFFIXES:
                names.setdefault(parent, set()).add(stem)
        for path in filter(None, self._folders):
            parent, _, name = path.rpartition("/")
            names.setdefault(parent, set()).add(name)
        return names

    def may_be_root(self, folder: str) -> bool:
        """Whether modules in the folder can be imported by their bare names, provided it is not a package."""
        if not folder or folder.rpartition("/")[2] in SOURCE_FOLDERS:
            return True
        return self._has_project_file(folder)

    def reach(self, path: str) -> Reach:
        """See `Modules.reach`."""
        folder, _, name = path.rpartition("/")
        if not path.endswith(SUFFIXES) and name not in PROJECT_FILES:
            return Reach()
        stem = name.rpartition(".")[0]
        words, is_init = {stem, *WORD.findall(name)[:1]}, stem == "__init__"
        if is_init:
            words.update(_last_word(folder), self.names_in(folder))
        for around in above(folder) if path.endswith(SUFFIXES) else ():
            if self.names_in(around):
                break
            words.update(_last_word(around))
        folders = {folder} if stem in {"__init__", "conftest"} else frozenset[str]()
        everything = name in PROJECT_FILES or (is_init and self.may_be_root(folder))
        return Reach(frozenset(words), frozenset(folders), everything)

    def _has_project_file(self, folder: str) -> bool:
        return any(f"{folder}/{name}" in self._paths for name in PROJECT_FILES)

    def _resolve_target(self, folder: str, target: str, *, itself: str = "") -> ModuleRef | None:
        name = target.lstrip(".")
        level = len(target) - len(name)
        parts = name.split(".") if name else []
        if level:
            return self._resolve_relative(folder, level, parts)
        if not parts or not all(parts) or parts[0] in LOADED:
            return None
        return self._resolve_absolute(folder, parts, itself)

    def _resolve_relative(self, folder: str, level: int, parts: list[str]) -> ModuleRef | None:
        for _ in range(level - 1):
            if not folder:
                return None
            folder = folder.rpartition("/")[0]
        return self._find_submodule(ModuleRef(self._package_file(folder), folder), parts)

    def _resolve_absolute(self, folder: str, parts: list[str], itself: str) -> ModuleRef | None:
        top = parts[0]
        own = self._root_of(folder)
        found = self._find_module(own, top)
        if top in sys.stdlib_module_names:
            return (
                None
                if found is None or not self._shadows_stdlib(folder, own, top)
                else self._find_submodule(found, parts[1:])
            )
        on_path: list[str] = []
        beside: list[str] = []
        packages: list[ModuleRef] = []
        for root, takes_modules in self._search_roots(own):
            found = self._find_module(root, top)
            if found is None or (itself and found.file == itself):
                continue
            if found.file is None:
                (on_path if takes_modules else beside).append(_join_path(root, top))
            elif takes_modules:
                return self._find_submodule(found, parts[1:])
            elif found.folder is not None:
                packages.append(found)
        if self._find_submodule(_namespace_ref(on_path, ()), parts[1:]) is not None:
            return self._in_spaces(on_path, parts, itself)
        inside = (self._find_submodule(package, parts[1:]) for package in packages)
        first = next((ref for ref in inside if ref is not None), None)
        return first or self._in_spaces([*on_path, *beside], parts, itself)

    def _in_spaces(self, folders: list[str], parts: list[str], itself: str) -> ModuleRef | None:
        """Look in a namespace package with these portions, or elsewhere in the repository."""
        far = [one for one in self._namespace_folders(parts[0]) if one not in folders]
        found = self._find_submodule(_namespace_ref(folders, far), parts[1:])
        if found is not None and found.file is not None:
            return found
        other = self._find_elsewhere(parts, itself)
        return (
            other
            if found is None or (other is not None and self._project_contains(folders, other))
            else found
        )

    def _project_contains(self, folders: list[str], ref: ModuleRef) -> bool:
        """Whether the first folder is a project that contains `ref`: `core` for `core/src/core/__init__.py`."""
        file = ref.file or ""
        return all(self._has_project_file(one) and file.startswith(f"{one}/") for one in folders[:1])

    def _namespace_folders(self, top: str) -> list[str]:
        """Folders of that name without `__init__` in the roots of projects."""
        found = ((root, self._find_module(root, top)) for root in self._project_roots)
        return [_join_path(root, top) for root, ref in found if ref is not None and ref.file is None]

    def _in_portions(self, ref: ModuleRef, name: str) -> ModuleRef | None:
        near = (ref.folder or "", *ref.portions) if ref.folder not in ref.far else ()
        spaces = []
        for folder in near:
            found = self._find_module(folder, name)
            if found is not None and found.file is not None:
                return found
            if found is not None:
                spaces.append(_join_path(folder, name))
        others = [(folder, self._find_module(folder, name)) for folder in ref.far]
        files = [found for _, found in others if found is not None and found.file is not None]
        if len(files) == 1 and not spaces:
            return files[0]
        far = [
            _join_path(folder, name) for folder, found in others if found is not None and found.file is None
        ]
        return _namespace_ref(spaces, far)

    def _shadows_stdlib(self, folder: str, own: str, top: str) -> bool:
        """Whether a file in the root `own` takes precedence over a module of the standard library."""
        found = self._find_module(own, top)
        if found is None or found.file is None:
            return False
        return own == folder or f"{folder}/".startswith(_join_path(own, top) + "/")

    def _find_elsewhere(self, parts: list[str], itself: str) -> ModuleRef | None:
        top = parts[0]
        roots = self._top_roots.get(top, ())
        found = [self._find_module(root, top) for root in roots]
        regular = [ref for ref in found if ref is not None and ref.file not in {None, itself}]
        packages = [ref for ref in regular if ref.folder is not None]
        for refs in (packages, regular):
            if len(refs) == 1:
                return self._find_submodule(refs[0], parts[1:])
        return None

    def _find_submodule(self, ref: ModuleRef | None, parts: list[str]) -> ModuleRef | None:
        for part in parts:
            if ref is None:
                return None
            ref = self.child(ref, part)
        return ref

    def _find_module(self, folder: str, name: str) -> ModuleRef | None:
        """Look up `name` in the folder: sources before stubs, of each packages before modules, bare folders last."""
        base = f"{folder}/{name}" if folder else name
        paths = self._paths
        is_folder = base in self._folders
        for suffix in SUFFIXES:
            if is_folder and (file := f"{base}/__init__{suffix}") in paths:
                return ModuleRef(file, base)
            if (file := f"{base}{suffix}") in paths:
                return ModuleRef(file, None)
        return ModuleRef(None, base) if is_folder else None

    def _package_file(self, folder: str) -> str | None:
        """The file that makes the folder a package."""
        files = (_join_path(folder, f"__init__{suffix}") for suffix in SUFFIXES)
        return next((file for file in files if file in self._paths), None)

    def _in_package(self, folder: str) -> bool:
        return self._package_file(folder) is not None

    def _outermost_root(self, folder: str) -> str:
        """The folder that contains the outermost package around `folder`, or `folder` if it is not in a package."""
        is_inside = folder and self._in_package(folder)
        return self._root_of(folder.rpartition("/")[0]) if is_inside else folder

    def _list_roots(self, own: str) -> tuple[tuple[str, bool], ...]:
        """The roots to look in, and whether plain modules count there."""
        roots = {own: True}
        for folder in above(own):
            is_project = self._is_project(folder) or _join_path(folder, "conftest.py") in self._paths
            roots.setdefault(folder, is_project)
            for below in (_join_path(folder, name) for name in SOURCE_FOLDERS):
                if below in self._folders and self._is_project(below):
                    roots.setdefault(below, True)
        return tuple(roots.items())

    def _is_project(self, folder: str) -> bool:
        return not folder or (not self._in_package(folder) and self.may_be_root(folder))

    @cached_property
    def _project_roots(self) -> list[str]:
        return sorted(folder for folder in self._folders if self._is_project(folder))

    @cached_property
    def _top_roots(self) -> dict[str, list[str]]:
        """For each top-level name, the sorted roots that contain such a package or a project's module."""
        tops: dict[str, set[str]] = {}
        for path in self._paths:
            folder, _, name = path.rpartition("/")
            stem, dot, suffix = name.rpartition(".")
            if dot + suffix not in SUFFIXES:
                continue
            if stem == "__init__":
                root, _, stem = folder.rpartition("/")
                if not self._in_package(root):
                    tops.setdefault(stem, set()).add(root)
            elif self._is_project(folder):
                tops.setdefault(stem, set()).add(folder)
        return {top: sorted(roots) for top, roots in tops.items()}


def _last_word(folder: str) -> list[str]:
    return WORD.findall(folder.rpartition("/")[2])


def _module_folders(paths: Iterable[str]) -> frozenset[str]:
    """All folders that contain a module, directly or further down."""
    folders: set[str] = {path.rpartition("/")[0] for path in paths if path.endswith(SUFFIXES)}
    for folder in list(folders):
        parent = folder
        while parent and (parent := parent.rpartition("/")[0]) not in folders:
            folders.add(parent)
    return frozenset(folders)


def _namespace_ref(near: Sequence[str], far: Sequence[str]) -> ModuleRef | None:
    folders = near or far
    return ModuleRef(None, folders[0], tuple(near[1:]), tuple(far)) if folders else None


def _join_path(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
