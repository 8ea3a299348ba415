"""Makes commits and refs survive a power cut: git syncs packs, but neither loose objects nor folders of refs."""

import os
from pathlib import Path

from clean_room_agent.atomic_write import sync_file, sync_folder
from clean_room_agent.errors import RepositoryError
from clean_room_agent.git.command import one_line, require_hex
from clean_room_agent.git.repository import Repository

COMPARED = ("-r", "-t", "-z", "--raw", "--root", "--no-abbrev", "--no-renames", "--no-commit-id")
"""How a commit is compared with its parent: all files and folders that it has otherwise, by their objects' names."""


def sync_commit(repo: Repository, commit: str) -> None:
    """Sync the objects that `commit` adds to its parents to disk; call it before a ref names the commit."""
    require_hex(commit)
    tree = one_line(repo.git("rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}"))
    listed = (
        repo.git("diff-tree", *COMPARED, "--end-of-options", commit)
        .decode("utf-8", "surrogateescape")
        .split("\0")
    )
    added = {line.split(" ")[3] for line in listed if line.startswith(":")}
    objects = repo.common_dir / "objects"
    folders = {objects}
    for name in sorted({commit, tree, *added} - {repo.zero}):
        path = objects / name[:2] / name[2:]
        if path.exists():  # else it is in a pack, or borrowed
            sync_file(path)
            folders.add(path.parent)
    for folder in sorted(folders):
        sync_folder(folder)


def write_ref(repo: Repository, ref: str, commit: str, expected: str) -> None:
    """`ref` itself names `commit`, also after a power cut, and named `expected` before (zeros: nothing).

    Raises:
        RepositoryError: a link stands in its place, or in that of one of its folders.
        GitError: it named something else.
    """
    refuse_linked(repo, ref)
    repo.git("update-ref", "--no-deref", "--", ref, require_hex(commit), require_hex(expected))
    sync_ref(repo, ref)


def refuse_linked(repo: Repository, ref: str) -> None:
    """Check that no symbolic link redirects what git writes for `ref`.

    Raises:
        RepositoryError: git would follow a link to some other ref, or out of its folder.
    """
    for kind in ("", "logs"):
        path = repo.common_dir
        for name in (*filter(None, (kind,)), *ref.split("/")):
            path /= name
            if path.is_symlink():
                raise RepositoryError(
                    f"{path} is a link: what is written there would change other refs",
                    hint=f"remove it: rm {path}",
                )


def sync_ref(repo: Repository, ref: str) -> None:
    """The name that `ref` has in git's folder is on the disk, with the folders that lead to it."""
    folder = (repo.common_dir / ref).parent
    while _is_below(folder, repo.common_dir) and folder.is_dir():
        sync_folder(folder)
        folder = folder.parent


def _is_below(folder: Path, top: Path) -> bool:
    return os.path.commonpath((folder, top)) == str(top)
