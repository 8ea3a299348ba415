"""Finds the packages that Go imports refer to: a package is a folder, its name begins with the module of a `go.mod`."""

import re
from collections.abc import Collection, Iterable
from functools import cached_property

from clean_room_agent.languages.base import WORD, ModuleRef, Modules, Reach, ReadText

OWN_PACKAGE = "."
SUFFIX, TEST_SUFFIX, MANIFEST = ".go", "_test.go", "go.mod"
MODULE = re.compile(r'^module[ \t]+"?([^\s"]+)', re.MULTILINE)


class GoPackages(Modules):
    """The packages of a repository. Tests see what other tests of their folder define, other files do not."""

    def __init__(self, paths: Collection[str], read: ReadText) -> None:
        self._folders: dict[str, list[str]] = {}
        for path in sorted(paths):
            if path.endswith(SUFFIX):
                self._folders.setdefault(path.rpartition("/")[0], []).append(path)
        self._manifests = sorted(path for path in paths if path.rpartition("/")[2] == MANIFEST)
        self._read = read

    def find(self, source: str, target: str) -> ModuleRef | None:
        """See `Modules.find`."""
        if target == OWN_PACKAGE:
            files = self._folders.get(source.rpartition("/")[0], [])
            return _package_ref(files if source.endswith(TEST_SUFFIX) else _without_tests(files))
        for module, root in self._module_folders.items():
            if target == module or target.startswith(f"{module}/"):
                folder = f"{root}{target[len(module) :]}".strip("/")
                found = _package_ref(_without_tests(self._folders.get(folder, [])))
                if found is not None:
                    return found
        return None

    def reach(self, path: str) -> Reach:
        """See `Modules.reach`; what is beside a file sees its names without an import."""
        folder, _, name = path.rpartition("/")
        if name == MANIFEST:
            return Reach(everything=True)
        if not path.endswith(SUFFIX):
            return Reach()
        modules = [module for module, root in self._module_folders.items() if root == folder]
        words = [word for named in (folder, *modules) for word in WORD.findall(named.rpartition("/")[2])]
        return Reach(frozenset(words), frozenset({folder}))

    @cached_property
    def _module_folders(self) -> dict[str, str]:
        """The folder of each module by its name, the longest name first."""
        found = {path.rpartition("/")[0]: MODULE.search(self._read(path) or "") for path in self._manifests}
        named = {match[1]: folder for folder, match in found.items() if match is not None}
        return dict(sorted(named.items(), key=lambda one: (-len(one[0]), one[0])))


def package_names(target: str) -> tuple[str, ...]:
    """What the package of an import may be called where it has no other name, which only its own files say."""
    parts = [part for part in target.split("/") if not re.fullmatch(r"v\d+", part)] or [target]
    last = re.sub(r"\.v\d+\Z", "", parts[-1])
    bare = re.sub(r"\Ago-|[-.]go\Z", "", last)
    return tuple(dict.fromkeys(one.replace("-", "_") for one in (last, bare)))


def _package_ref(files: Iterable[str]) -> ModuleRef | None:
    found = tuple(files)
    return ModuleRef(None, None, files=found) if found else None


def _without_tests(files: Iterable[str]) -> list[str]:
    return [path for path in files if not path.endswith(TEST_SUFFIX)]
