"""What of a repository is shown to the commands that test it, beside the commit: included files, a bare configuration."""

import codecs
import os
import re
from collections.abc import Iterator
from pathlib import Path

from clean_room_agent.git.command import git, names
from clean_room_agent.git.generated import split_generated
from clean_room_agent.git.repository import Repository

INCLUDE_FILE = ".worktreeinclude"
BATCH = 500
"""Paths in one command line."""
ALTERNATES = "info/alternates"
MOST_ALTERNATES = 32
DEEPEST = 5
"""As git: beyond, it follows none."""
OF_OBJECTS = re.compile(r"[0-9a-f]{2}|pack|info|tmp_\w+|tmp-objdir-.*|incoming-.*|bulk-fsync-.*")
NEEDED = (
    "core.repositoryformatversion",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "core.abbrev",
    "extensions.objectformat",
    "extensions.compatobjectformat",
    "extensions.refstorage",
    "extensions.noop",
    "extensions.preciousobjects",
)


def included_files(repo: Repository) -> tuple[str, ...]:
    """The files of the user's tree that its `.worktreeinclude` names by the patterns of a .gitignore, and that a snapshot
    has not: ignored ones, and those in generated folders; sorted.
    """
    if not (repo.top / INCLUDE_FILE).is_file():
        return ()
    listed = repo.git("ls-files", "-z", "--others", "--ignored", f"--exclude-from={INCLUDE_FILE}")
    named = tuple(path for path in names(listed) if not path.endswith("/"))
    if not named:
        return ()
    outside, _ = split_generated(str(repo.top), names(repo.git("ls-files", "-z", "--cached")), named)
    found = {*named} - {*outside}
    for at in range(0, len(named), BATCH):
        ignored = repo.git(
            *("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"), *named[at : at + BATCH]
        )
        found.update(names(ignored))
    return tuple(sorted(found))


def bare_configuration(repo: Repository) -> bytes:
    """The part of the repository's configuration that git needs to read it: no remote, no helper, no password."""
    listed = git("config", "--file", str(repo.common_dir / "config"), "--list", "-z", cwd=Path("/"))
    lines: list[str] = []
    for entry in names(listed):
        key, _, value = entry.partition("\n")
        section, _, name = key.partition(".")
        if key in NEEDED and value.isalnum():
            lines.append(f"[{section}]\n\t{name} = {value}\n")
    return "".join(lines).encode()


def alternate_folders(repo: Repository) -> tuple[Path, ...]:
    """The object folders of other repositories that this one borrows from (`git clone --shared`), theirs included.

    Absolute, each once, in git's order. A folder that holds anything but objects is left out: what the repository
    names there is not trusted to be what it says.
    """
    found: list[Path] = []
    _gather(repo.common_dir / "objects", found, depth=1)
    return tuple(found)


def _gather(objects: Path, found: list[Path], *, depth: int) -> None:
    if depth > DEEPEST:
        return
    for folder in _named(objects):
        if folder not in found and len(found) < MOST_ALTERNATES and _holds_objects(folder):
            found.append(folder)
            _gather(folder, found, depth=depth + 1)


def _named(objects: Path) -> Iterator[Path]:
    file = objects / ALTERNATES
    if not file.is_file():
        return
    for line in file.read_bytes().split(b"\n"):
        if line and not line.startswith(b"#"):
            quoted = line.startswith(b'"') and line.endswith(b'"') and len(line) > 1
            name = codecs.escape_decode(line[1:-1])[0] if quoted else line
            yield Path(os.path.normpath(objects / os.fsdecode(name)))


def _holds_objects(folder: Path) -> bool:
    return folder.is_dir() and all(OF_OBJECTS.fullmatch(entry.name) for entry in folder.iterdir())
