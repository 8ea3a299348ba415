"""The part of `.git` that test commands may see: what the history needs, and nothing else.

The folder contains passwords (`credentials`, included configuration, `FETCH_HEAD`), other worktrees, logs, sockets, and
anything that somebody put there. So a new one is built: objects as a folder, all else as bytes that are read here.
"""

import re
from pathlib import Path

from clean_room_agent import safe_open
from clean_room_agent.git.command import HEX, git, names
from clean_room_agent.git.repository import Repository

REFS = ("refs/heads", "refs/tags", "refs/remotes", "refs/notes", "refs/replace")
"""Not the stash, and no snapshots of other runs."""
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

    A link is not followed, nor are objects that are borrowed from another repository (`git clone --shared`): the repository
    is not trusted to name only folders of objects. Git is there without that part of the history.
    """
    folders = {name: repo.common_dir / name for name in ("objects", "reftable")}
    return {name: place for name, place in folders.items() if place.is_dir() and not place.is_symlink()}


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


def _refs(repo: Repository) -> bytes:
    return repo.git("for-each-ref", "--format=%(objectname) %(refname)", *REFS)
