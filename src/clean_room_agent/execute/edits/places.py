"""What stands at the paths of a tree, and so where no file can be created."""

import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from types import MappingProxyType

from clean_room_agent.paths import is_test_path

NOTHING: AbstractSet[str] = frozenset()
NO_OTHERS: Mapping[str, str] = MappingProxyType({})


class Places(Collection[str]):
    """The files of a tree that edits may change, and what else is in it."""

    def __init__(
        self,
        files: Iterable[str],
        others: Mapping[str, str] = NO_OTHERS,
        *,
        only: AbstractSet[str] = NOTHING,
    ) -> None:
        """`others` says what stands at paths that are not for edits: "a link". `only` are the files that the user allows to be
        changed, besides tests; empty: all.
        """
        self._files = frozenset(files) - others.keys()
        self._others = others
        self._only = only

    @classmethod
    def of(cls, paths: Collection[str]) -> "Places":
        """The paths as places; if nothing else is known, there are only these files."""
        return paths if isinstance(paths, Places) else cls(paths)

    def __contains__(self, path: object) -> bool:
        return path in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def outside(self, path: str) -> str:
        """Why the user does not allow that the file is changed or created, in words; "" if it is allowed."""
        if not self._only or path in self._only or is_test_path(path):
            return ""
        return f"{path} is none of the files that --file names: {', '.join(sorted(self._only))}"

    def obstacle(
        self, path: str, *, made: AbstractSet[str] = NOTHING, gone: AbstractSet[str] = NOTHING
    ) -> str:
        """Why `path` is no file for edits and cannot become one, in words; "" if it is or can. `made` and `gone` are files
        that are created and deleted before.
        """
        outside = self.outside(path)
        if outside:
            return outside
        now = _Now(self, made, gone)
        if path in self and path not in gone:
            return ""
        if path in self._others:
            return f"{path} is {self._others[path]}"
        for above in _folders(path):
            what = now.what(above)
            if what:
                return f"{above} is {what}, so nothing can be inside it"
        if now.is_folder(path):
            return f"{path} is a folder"
        twin = now.twin(path)
        return f"only letter case or Unicode form tells it from {twin}" if twin else ""

    def what(self, path: str) -> str:
        """What stands there; "" for nothing, or a folder."""
        return "a file" if path in self._files else self._others.get(path, "")

    @cached_property
    def in_order(self) -> list[str]:
        """All that is in the tree."""
        return sorted((*self._files, *self._others))


class _Now:
    """The tree after some files were created and deleted."""

    def __init__(self, places: Places, made: AbstractSet[str], gone: AbstractSet[str]) -> None:
        self._places = places
        self._made = made
        self._gone = gone

    def what(self, path: str) -> str:
        if path in self._made:
            return "a file"
        return "" if path in self._gone else self._places.what(path)

    def is_folder(self, path: str) -> bool:
        return next(self._below(f"{path}/"), None) is not None

    def twin(self, path: str) -> str:
        """What a file system may take for the file, or for a folder that it is in."""
        parent = ""
        for name in path.split("/"):
            if not (self.what(f"{parent}{name}") or self.is_folder(f"{parent}{name}")):
                alike = (other for other in self._names(parent) if _folded(other) == _folded(name))
                return next((f"{parent}{other}" for other in alike), "")
            parent += f"{name}/"
        return ""

    def _names(self, parent: str) -> Iterator[str]:
        """What is directly inside the folder ("" or ending with a slash), each at least once."""
        start = parent
        while (found := next(self._standing(start, parent), None)) is not None:
            name = found.removeprefix(parent).partition("/")[0]
            yield name
            # Behind all that is inside a folder of that name, or behind the file.
            start = f"{parent}{name}0" if found != f"{parent}{name}" else f"{found}\0"
        for path in sorted(self._made):
            if path.startswith(parent):
                yield path.removeprefix(parent).partition("/")[0]

    def _below(self, parent: str) -> Iterator[str]:
        yield from self._standing(parent, parent)
        yield from (path for path in self._made if path.startswith(parent))

    def _standing(self, start: str, parent: str) -> Iterator[str]:
        """What of the tree is left below `parent`, from `start` on, in order."""
        listed = self._places.in_order
        for at in range(bisect_left(listed, start), len(listed)):
            if not listed[at].startswith(parent):
                return
            if listed[at] not in self._gone:
                yield listed[at]


def _folders(path: str) -> Iterator[str]:
    """The folders that `path` is in, the outermost first."""
    parts = path.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))


def _folded(name: str) -> str:
    """The name as file systems compare it that fold case or normalize Unicode."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
