"""Where the interpreters and tools that a command needs are kept, in the user's home or elsewhere, and no more than that."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix")))
"""Shown as they are."""
PREFIX_PARTS = ("bin", "lib", "lib64", "libexec", "include", "pyvenv.cfg")
"""What a tool's prefix may hold that a run of it needs. Not `share`: below `~/.local` it holds keyrings."""
SHIM_PARTS = ("shims", "libexec", "versions", "installs", "plugins", "bin", "version")
"""The same where programs are found by shims, as pyenv's."""
MAX_HOPS = 16


def tool_places(environment: Mapping[str, str], commands: Sequence[str]) -> tuple[Path, ...]:
    """The files and folders beyond the system's that programs of PATH, of an active virtual environment and of
    `commands` (shell text) need to run, and the folders of PYTHONPATH; existing, absolute, sorted, links not resolved.
    """
    programs = [Path(entry) for entry in environment.get("PATH", "").split(":") if entry.startswith("/")]
    if environment.get("VIRTUAL_ENV", "").startswith("/"):
        programs.append(Path(environment["VIRTUAL_ENV"]) / "bin")
    named = [path for command in commands for path in _absolute_programs(command)]
    programs.extend(path.parent for path in named if path.parent.name == "bin")
    found = set(named)
    for folder in programs:
        found.update(_around(folder))
    for entry in environment.get("PYTHONPATH", "").split(":"):
        if entry.startswith("/"):
            found.add(Path(entry))
    return tuple(sorted(path for path in found if os.access(path, os.R_OK) and not is_system(path)))


def interpreter_places(environment_folder: Path) -> tuple[Path, ...]:
    """What the virtual environment at the path needs outside of itself: the prefix of its interpreter, along each link."""
    found: set[Path] = set()
    for name in ("python", "python3"):
        for target in _hops(environment_folder / "bin" / name):
            if not target.is_relative_to(environment_folder):
                found.update(_around(target.parent))
    return tuple(sorted(path for path in found if not is_system(path)))


def is_system(path: Path) -> bool:
    """Whether the path is shown anyway."""
    return any(path.is_relative_to(folder) for folder in SYSTEM)


def _absolute_programs(command: str) -> Iterator[Path]:
    try:
        words = shlex.split(command)
    except ValueError:
        return
    for word in words:
        path = Path(word)
        if path.is_absolute() and os.access(path, os.X_OK) and path.is_file():
            yield path


def _around(folder: Path) -> Iterator[Path]:
    """The folder of programs, what belongs to it, and where an interpreter in it leads."""
    if is_system(folder) or not os.access(folder, os.R_OK | os.X_OK) or not folder.is_dir():
        return
    prefix = folder.parent
    if folder.name == "shims":
        yield from (prefix / name for name in SHIM_PARTS if os.access(prefix / name, os.R_OK))
    elif folder.name == "bin":
        yield from (prefix / name for name in PREFIX_PARTS if os.access(prefix / name, os.R_OK))
    else:
        yield folder
    if (prefix / "pyvenv.cfg").is_file():
        yield from interpreter_places(prefix)
    else:
        yield from _linked_to(folder)


def _linked_to(folder: Path) -> Iterator[Path]:
    """Where the links in a folder of programs lead, as those of `~/.local/bin` do to tools that stand elsewhere."""
    for entry in sorted(folder.iterdir()):
        if entry.is_symlink():
            for target in _hops(entry):
                if target.parent == folder:
                    continue
                prefix = target.parent.parent
                parts = PREFIX_PARTS if target.parent.name == "bin" else ()
                yield from (prefix / name for name in parts if os.access(prefix / name, os.R_OK))
                if not parts and os.access(target, os.R_OK):
                    yield target


def _hops(link: Path) -> Iterator[Path]:
    """The paths that a link leads to, one by one, until one is no link."""
    for _ in range(MAX_HOPS):
        if not link.is_symlink():
            return
        link = Path(os.path.normpath(link.parent / link.readlink()))
        yield link
