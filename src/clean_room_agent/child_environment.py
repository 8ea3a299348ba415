"""The environment of child processes outside of the sandbox: programs by absolute path, nothing relative.

An empty or relative entry of PATH, and of the folders that the loader looks into (`/usr/local/cuda/lib64:` has one), is
the folder in which a child runs: that of a repository, or one that code under test has filled.
"""

import functools
import os
import shutil
from collections.abc import Mapping

LOADER = ("LD_", "DYLD_")
"""Beginnings of the variables that tell the loader what to load."""
SHELL_STARTS = frozenset({"BASH_ENV", "ENV"})
"""Files that a shell reads before it does what it was told."""


def outside(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment as a child outside of the sandbox gets it."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith(LOADER) and name not in SHELL_STARTS
    }
    if "PATH" in kept:
        kept["PATH"] = absolute_entries(kept["PATH"])
    return kept


def absolute_entries(path: str) -> str:
    """The entries of a list of folders that mean the same wherever a program runs."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if entry.startswith("/"))


def absolute_program(name: str, environment: Mapping[str, str]) -> str:
    """The absolute path of the program, looked up once; `name` itself if it is a path, or there is no such program."""
    if "/" in name:
        return name
    try:
        return _found(name, absolute_entries(environment.get("PATH", os.defpath)))
    except FileNotFoundError:
        return name


@functools.cache
def _found(name: str, path: str) -> str:
    found = shutil.which(name, path=path)
    if found is None:
        raise FileNotFoundError(name)
    return found
