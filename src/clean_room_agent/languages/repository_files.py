"""The files of a repository, as what looks for its test command reads them."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from clean_room_agent import safe_open
from clean_room_agent.config import BYTE_ORDER_MARK, load_toml
from clean_room_agent.languages.jsonc import as_object, read_object
from clean_room_agent.paths import is_named_test

LOOKED_AT = 40
"""Test files that are read to see which framework they use."""
MAX_BYTES = 1 << 20
"""Bytes that are read of one file."""


class RepositoryFiles:
    """The files of a repository."""

    def __init__(self, top: Path, paths: Sequence[str]) -> None:
        self.top = top
        self.paths = frozenset(paths)

    def text(self, path: str) -> str:
        """The beginning of the regular file at `path`; "" if there is none."""
        try:
            data = safe_open.read_bytes(self.top, path, max_bytes=MAX_BYTES)
        except OSError:
            return ""
        return data.decode("utf-8", "replace").removeprefix(BYTE_ORDER_MARK)

    def first(self, names: Sequence[str]) -> str:
        """The first of these files in the top folder that there is; "" for none."""
        return next((name for name in names if name in self.paths), "")

    def nearest(self, name: str) -> list[str]:
        """The files of this name, those nearest to the top folder first."""
        found = [path for path in self.paths if path.rpartition("/")[2] == name]
        return sorted(found, key=lambda path: (path.count("/"), path))

    def below(self, folder: str) -> "RepositoryFiles":
        """Those in the folder, as if it were the top."""
        start = f"{folder}/"
        return RepositoryFiles(
            self.top / folder, [path.removeprefix(start) for path in self.paths if path.startswith(start)]
        )

    def toml(self, path: str, *tables: str) -> Mapping[str, object]:
        """The contents of the TOML file at `path`, or of the table in it that is reached by these names."""
        try:
            found: object = load_toml(self.text(path))
        except (ValueError, RecursionError):
            return {}
        for name in tables:
            found = as_object(found).get(name)
        return as_object(found)

    @cached_property
    def tools(self) -> Mapping[str, object]:
        """The tables of tools in pyproject.toml."""
        return self.toml("pyproject.toml", "tool")

    @cached_property
    def python_tests(self) -> list[str]:
        """The files that are tests in Python by their names."""
        return sorted(path for path in self.paths if path.endswith(".py") and is_named_test(path))

    @property
    def scripts(self) -> Mapping[str, object]:
        """The scripts of the package.json at the top, by their names."""
        return as_object(self.package("package.json").get("scripts"))

    def package(self, path: str) -> Mapping[str, object]:
        """The contents of the package.json at `path`."""
        return read_object(self.text(path))
