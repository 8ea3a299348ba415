"""Untracked folders that tools created: environments, installed packages, caches, build output.

Git lists their contents if no .gitignore names them. They are recognised by files that tools leave in them, or by a
name that no source folder has; a name that may be source (`build`, `target`) needs a second sign.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from clean_room_agent.artifacts.names import listed
from clean_room_agent.safe_open import read_or_none

CACHE_TAG = "CACHEDIR.TAG"
CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
"""The beginning of a CACHEDIR.TAG (https://bford.info/cachedir/)."""
BY_NAME = {
    "node_modules": "installed packages",
    "__pycache__": "compiled Python",
    ".tox": "test environments",
    ".nox": "test environments",
    ".mypy_cache": "a cache",
    ".ruff_cache": "a cache",
    ".pytest_cache": "a cache",
}
PYTHON_PROJECT = ("setup.py", "pyproject.toml")
SETUPTOOLS_BUILD = ("lib.", "bdist.", "temp.", "scripts-")
"""Prefixes of folders that setuptools creates in `build`, besides a plain `lib`."""
PACKAGES = (".whl", ".tar.gz", ".egg")
NAMED = 4
"""The most folders of one kind that are named one by one."""


class Generated(Struct, frozen=True):
    """A folder without tracked files, and what kind it is. Such folders are not nested."""

    path: str
    """Relative, with forward slashes."""
    what: str


def split_generated(
    top: str, tracked: Iterable[str], untracked: Sequence[str]
) -> tuple[tuple[str, ...], tuple[Generated, ...]]:
    """The untracked paths outside of generated folders, in order; and these folders, by path.

    A folder with a tracked file anywhere in it is the repository's own and stays; the top folder always does. `tracked` is read
    only where a folder has the signs of a generated one; of `untracked`, other repositories end in a slash.
    """
    folders = _Folders(top, tracked)
    kept = tuple(path for path in untracked if folders.around(path.rstrip("/").rpartition("/")[0]) is None)
    return kept, folders.generated()


class _Folders:
    """The folders of one working tree; each is examined once."""

    def __init__(self, top: str, tracked: Iterable[str]) -> None:
        self._top = top
        self._tracked = tracked
        self._known: dict[str, Generated | None] = {"": None}

    def around(self, folder: str) -> Generated | None:
        """The outermost generated folder that is or contains `folder`."""
        new = []
        while folder not in self._known:
            new.append(folder)
            folder = folder.rpartition("/")[0]
        found = self._known[folder]
        for name in reversed(new):
            if found is None:
                what = _what_made(self._top, name)
                found = Generated(name, what) if what and name not in self._tracked_folders else None
            self._known[name] = found
        return found

    def generated(self) -> tuple[Generated, ...]:
        """Those found so far, by path."""
        found = {folder for folder in self._known.values() if folder is not None}
        return tuple(sorted(found, key=lambda folder: folder.path))

    @cached_property
    def _tracked_folders(self) -> set[str]:
        """Every folder that contains a tracked file."""
        folders: set[str] = set()
        for path in self._tracked:
            folder = path.rpartition("/")[0]
            while folder and folder not in folders:
                folders.add(folder)
                folder = folder.rpartition("/")[0]
        return folders


def _what_made(top: str, folder: str) -> str:
    """What kind of folder it is, by characteristic files; "" if it has none."""
    above, _, name = folder.rpartition("/")
    place = f"{top}/{folder}"
    if name in BY_NAME:
        return BY_NAME[name]
    if is_regular(f"{place}/pyvenv.cfg"):
        return "a Python environment"
    if is_regular(f"{place}/conda-meta/history"):
        return "a conda environment"
    if _is_build_output(name, place, f"{top}/{above}" if above else top):
        return "build output"
    return "a cache" if _is_tagged(top, f"{folder}/{CACHE_TAG}") else ""


def _is_build_output(name: str, place: str, beside: str) -> bool:
    """Whether a folder that may be source by its `name` is what a build tool made `beside` its project's files."""
    if name == "target":
        return is_regular(f"{beside}/Cargo.toml")
    if name not in {"build", "dist"} or not any(
        is_regular(f"{beside}/{project}") for project in PYTHON_PROJECT
    ):
        return False
    try:
        entries = [entry.name for entry in Path(place).iterdir()]
    except OSError:
        return False
    if name == "build":
        others = [entry for entry in entries if entry != "lib"]
        return bool(others) and all(entry.startswith(SETUPTOOLS_BUILD) for entry in others)
    return all(entry.endswith(PACKAGES) for entry in entries)


def is_regular(path: str | Path) -> bool:
    """Whether there is a regular file at the path, which is no link itself."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _is_tagged(top: str, path: str) -> bool:
    return is_regular(f"{top}/{path}") and (
        read_or_none(Path(top), path, max_bytes=len(CACHE_SIGNATURE)) == CACHE_SIGNATURE
    )


def generated_in(account: str) -> tuple[Generated, ...]:
    """The folders that a snapshot's account names (JSON, as recorded; "" for none)."""
    if not account:
        return ()
    import json  # noqa: PLC0415 - only a run has one; msgspec refuses names that are not UTF-8

    kept = json.loads(account).get("generated", ())
    return tuple(Generated(path, what) for path, what in kept)


def generated_words(folders: Sequence[Generated]) -> str:
    """One line: what was left out, why, and how to include it; "" for no folder."""
    if not folders:
        return ""
    kinds: dict[str, list[str]] = {}
    for folder in folders:
        kinds.setdefault(folder.what, []).append(folder.path)
    told = "; ".join(
        f"{listed((f'{path}/' for path in paths), NAMED)} ({what})" for what, paths in kinds.items()
    )
    return (
        f"left out, made by tools and not tracked: {told}; to include a folder, track a file in it (git add)"
    )
