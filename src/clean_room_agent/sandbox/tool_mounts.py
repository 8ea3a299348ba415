"""Finds the folders of the interpreters and tools that a command needs, in the user's home or elsewhere.

PATH and the commands are the user's: what they name is shown with its prefix, and with the targets of its links. The
repository is not trusted: of its links, only those of a virtual environment's interpreter are followed, and only to a
real interpreter. That is a machine-code file in the `bin` of a prefix whose `lib` contains Python's own library, which
is how Python finds it, too. Of this prefix, `bin`, `lib` and similar folders are shown, if they are really inside it,
and nothing next to it, wherever the prefix is: `~/.pyenv/versions/3.11.9` is a prefix, `~/.pyenv` and `~/.ssh` are not.
"""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix")))
"""Shown as they are."""
SYSTEM_PREFIXES = tuple(f"{folder}/" for folder in SYSTEM)
PREFIX_PARTS = ("bin", "lib", "lib64", "libexec", "include", "pyvenv.cfg")
"""Parts of a tool's prefix that running it may need. Not `share`: below `~/.local` that contains keyrings."""
SHIM_PARTS = ("shims", "libexec", "versions", "installs", "plugins", "bin", "version")
"""The same for programs that are found through shims, such as pyenv's."""
MAX_HOPS = 16
MACHINE_CODE = b"\x7fELF"
LIBRARY = ("lib/python3*/os.py", "lib64/python3*/os.py", "lib/pypy3*/os.py")
"""A file of Python's own library, relative to its prefix."""


def tool_places(
    environment: Mapping[str, str], commands: Sequence[str], repository: Path | None = None
) -> tuple[Path, ...]:
    """The files and folders beyond the system's that programs of PATH, of an active virtual environment and of
    `commands` (shell text) need to run, and the folders of PYTHONPATH; existing, absolute, sorted, links not resolved.
    Links in `repository` are followed only to interpreters.
    """
    programs = [Path(entry) for entry in environment.get("PATH", "").split(":") if entry.startswith("/")]
    if environment.get("VIRTUAL_ENV", "").startswith("/"):
        programs.append(Path(environment["VIRTUAL_ENV"]) / "bin")
    named = [path for command in commands for path in _absolute_programs(command)]
    programs.extend(path.parent for path in named if path.parent.name == "bin")
    found = {path for path in named if not _stands_in(path, repository)}
    for folder in programs:
        if not _stands_in(folder, repository):
            found.update(_around(folder))
        elif (folder.parent / "pyvenv.cfg").is_file():
            found.update(interpreter_places(folder.parent))
    for entry in environment.get("PYTHONPATH", "").split(":"):
        if entry.startswith("/"):
            found.add(Path(entry))
    return tuple(sorted(path for path in found if os.access(path, os.R_OK) and not is_system(path)))


def interpreter_places(environment_folder: Path) -> tuple[Path, ...]:
    """What a virtual environment needs outside itself: the prefix of its interpreter, along every symbolic link."""
    found: set[Path] = set()
    for name in ("python", "python3"):
        link = environment_folder / "bin" / name
        prefix = interpreter_prefix(link)
        if prefix is None:
            continue
        found.update(_parts_within(prefix))
        for hop in _hops(link):
            if hop.parent.name == "bin" and hop.parent.parent.resolve() == prefix:
                found.update(_parts_within(hop.parent.parent))
            else:  # a name of the interpreter somewhere else: the one file
                found.add(hop)
    return tuple(
        sorted(path for path in found if not is_system(path) and not path.is_relative_to(environment_folder))
    )


def interpreter_prefix(link: Path) -> Path | None:
    """The prefix of the Python interpreter that the link leads to, all links resolved; None if it does not lead to one."""
    try:
        program = link.resolve(strict=True)
        prefix = program.parent.parent
        if program.parent.name != "bin" or not program.is_file() or not os.access(program, os.X_OK):
            return None
        with program.open("rb") as file:
            fit = file.read(len(MACHINE_CODE)) == MACHINE_CODE
        return prefix if fit and any(any(prefix.glob(pattern)) for pattern in LIBRARY) else None
    except (OSError, RuntimeError):  # a circle of links is a RuntimeError for pathlib
        return None


def _stands_in(path: Path, repository: Path | None) -> bool:
    if repository is None:
        return False
    return path.is_relative_to(repository) or path.resolve().is_relative_to(repository.resolve())


def _parts_within(prefix: Path) -> Iterator[Path]:
    """The parts of a prefix that are inside of it, and not links to elsewhere."""
    real = prefix.resolve()
    for name in PREFIX_PARTS:
        part = prefix / name
        if os.access(part, os.R_OK) and part.resolve().is_relative_to(real):
            yield part


def is_system(path: Path) -> bool:
    """Whether the path belongs to the system's folders, which are always shown."""
    return f"{path}/".startswith(SYSTEM_PREFIXES)


def _absolute_programs(command: str) -> Iterator[Path]:
    try:
        words = shlex.split(command)
    except ValueError:  # an apostrophe in a comment, or in the lines of `<<`
        words = command.split()
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
    """The targets of the links in a folder of programs, such as `~/.local/bin`."""
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
    """The paths that a link leads to, one by one, until one is not a link."""
    for _ in range(MAX_HOPS):
        if not link.is_symlink():
            return
        link = Path(os.path.normpath(link.parent / link.readlink()))
        yield link
