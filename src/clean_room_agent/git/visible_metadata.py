"""The part of `.git` that test commands may see: what the history needs, and nothing else.

The folder contains passwords (`credentials`, included configuration, `FETCH_HEAD`), other worktrees, logs, sockets, and
anything that somebody put there. So a new one is built: objects as a folder, all else as bytes that are read here.
"""

import codecs
import contextlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from clean_room_agent import safe_open
from clean_room_agent.errors import RepositoryError
from clean_room_agent.git.command import HEX, git, names
from clean_room_agent.git.repository import Repository

ALTERNATES = "info/alternates"
MOST_ALTERNATES = 32
DEEPEST = 5
"""The depth to which git follows alternates."""
REFS = ("refs/heads", "refs/tags", "refs/remotes", "refs/notes", "refs/replace")
"""Not the stash, and no snapshots of other runs."""
OBJECT = r"[0-9a-f]{40,64}"
OF_OBJECTS = (
    r"",
    r"[0-9a-f]{2}|pack|info",
    (
        rf"[0-9a-f]{{2}}/(?:[0-9a-f]{{38,62}}|tmp_obj_\w+)|info/(?:packs|commit-graphs?|(?:http-)?alternates)"
        rf"|pack/(?:pack-{OBJECT}\.(?:pack|idx|rev|bitmap|mtimes|keep|promisor)|tmp_\w+|\.tmp-.*"
        rf"|multi-pack-index(?:-{OBJECT}\.\w+)?)"
    ),
    rf"info/commit-graphs/(?:graph-{OBJECT}\.graph|commit-graph-chain|tmp_\w+)",
)
"""Patterns of names in an object folder, by their depth in it."""
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


def written_files(repo: Repository) -> dict[str, bytes]:
    """The files of a stand-in for `.git`: the configuration, the refs, and the boundary of a shallow history."""
    found = {"config": bare_configuration(repo), "packed-refs": _refs(repo)}
    try:
        ends = safe_open.read_bytes(repo.common_dir, "shallow").decode("ascii", "replace").split()
    except OSError:
        return found
    return found | {"shallow": "".join(f"{end}\n" for end in ends if re.fullmatch(HEX, end)).encode()}


def shown_folders(repo: Repository) -> dict[str, Path]:
    """The folders that are shown unchanged: the objects, and reftables, if refs are stored that way.

    Raises:
        RepositoryError: the object folder is a link to something other than objects.
    """
    objects, tables = repo.common_dir / "objects", repo.common_dir / "reftable"
    if objects.is_symlink() and not holds_objects(objects.resolve()):
        raise RepositoryError(
            f"{objects} is a link to a folder that contains other things than objects",
            hint="put only the repository's objects there, or clone it again",
        )
    found = {"objects": objects.resolve()}
    return found | ({"reftable": tables} if tables.is_dir() and not tables.is_symlink() else {})


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

    Absolute, without duplicates, in git's order. A folder that contains anything but objects is left out, since the
    repository is not trusted to name only object folders.
    """
    found: list[Path] = []
    _gather(repo.common_dir / "objects", found, depth=1)
    return tuple(found)


def holds_objects(folder: Path) -> bool:
    """Whether everything below the folder is a git object or belongs to one, by name, type and first bytes."""
    try:
        return folder.is_dir() and all(_is_of_objects(entry, depth) for entry, depth in _below(folder, 1))
    except OSError:
        return False


def _refs(repo: Repository) -> bytes:
    return repo.git("for-each-ref", "--format=%(objectname) %(refname)", *REFS)


def _gather(objects: Path, found: list[Path], *, depth: int) -> None:
    if depth > DEEPEST:
        return
    for folder in _named(objects):
        if folder not in found and len(found) < MOST_ALTERNATES and holds_objects(folder):
            found.append(folder)
            _gather(folder, found, depth=depth + 1)


def _named(objects: Path) -> Iterator[Path]:
    file = objects / ALTERNATES
    if not file.is_file():
        return
    for line in file.read_bytes().split(b"\n"):
        if line and not line.startswith(b"#"):
            yield Path(os.path.normpath(objects / os.fsdecode(_unquoted(line))))


def _unquoted(line: bytes) -> bytes:
    """The name in a line; if its quoting is invalid, the line itself, as git does it."""
    if line.startswith(b'"') and line.endswith(b'"') and len(line) > 1:
        with contextlib.suppress(ValueError):
            return codecs.escape_decode(line[1:-1])[0]
    return line


def _below(folder: Path, depth: int) -> Iterator[tuple[os.DirEntry[str], int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry, depth
            if entry.is_dir(follow_symlinks=False) and depth < len(OF_OBJECTS):
                yield from _below(Path(entry.path), depth + 1)


def _is_of_objects(entry: os.DirEntry[str], depth: int) -> bool:
    if depth >= len(OF_OBJECTS):
        return False
    name = "/".join(Path(entry.path).parts[-depth:])
    if not re.fullmatch(OF_OBJECTS[depth], name):
        return False
    if entry.is_dir(follow_symlinks=False):
        return depth == 1 or name == "info/commit-graphs"
    return depth > 1 and stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode) and _begins_well(entry, name)


def _begins_well(entry: os.DirEntry[str], name: str) -> bool:
    """Whether the file begins like git's: a pack with its signature, a single object with the header of compressed
    data.
    """
    single, packed = name[2] == "/", name.endswith(".pack")
    if not single and not packed:
        return True
    with Path(entry.path).open("rb") as file:
        head = file.read(4)
    if packed:
        return head == b"PACK"
    return len(head) < 2 or (head[0] & 0x8F == 0x08 and int.from_bytes(head[:2], "big") % 31 == 0)
