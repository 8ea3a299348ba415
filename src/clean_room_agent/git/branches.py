"""Branches of results: creating and moving them, what uses one in any worktree, and deleting one that nothing uses.

A rebase or a bisection leaves HEAD detached and returns to its branch at the end, so git's list of worktrees does not name
the branch then; git's own notes in the worktree's folder do.
"""

import itertools
import shlex
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from clean_room_agent import safe_open
from clean_room_agent.errors import GitError, RepositoryError
from clean_room_agent.git.command import one_line, require_hex
from clean_room_agent.git.refs import list_refs, refuse_linked, update_ref
from clean_room_agent.git.repository import Repository

MAX_NOTE_BYTES = 1 << 20
NOTES = (
    ("rebase-merge/head-name", "being rebased", "rebase --abort"),
    ("rebase-merge/update-refs", "updated by a rebase", "rebase --abort"),
    ("rebase-apply/head-name", "being rebased", "rebase --abort"),
    ("BISECT_START", "being bisected", "bisect reset"),
)
"""Files in a worktree's folder of git that name branches, what they say, and the git command that ends it."""


class BranchUse(Struct, frozen=True, kw_only=True):
    """A worktree that needs a branch."""

    words: str
    """What it does with the branch: a predicate that names the worktree."""
    remedy: str


def branch_use(repo: Repository, name: str) -> BranchUse | None:
    """The first worktree that has the branch checked out, or is in the middle of a rebase or a bisection of it; also one
    whose folder is missing, which may be on a disk that is not mounted.
    """
    ref = f"refs/heads/{name}"
    at = one_line(repo.git("for-each-ref", "--format=%(worktreepath)", "--", ref)).strip("\n")
    if at:
        return _use(Path(at), "checked out", "switch --detach")
    for notes, folder in _worktrees(repo):
        for note, what, end in NOTES:
            if {ref, name} & {*_lines(repo.common_dir, f"{notes}{note}")}:
                return _use(folder, what, end)
    return None


def create_branch(repo: Repository, name: str, commit: str, synced: set[str] | None = None) -> None:
    """Create the branch `name` at `commit`, durably; HEAD does not move. `synced` as for `update_ref`.

    Raises:
        RepositoryError: the branch exists, another one is in its way, or the name is invalid.
    """
    try:
        repo.git("check-ref-format", f"refs/heads/{name}")
        update_ref(repo, f"refs/heads/{name}", commit, expected="", synced=synced)
    except GitError as exc:
        raise RepositoryError(
            f"cannot make the branch {name}: {exc.message}",
            hint=f"rename or delete the one in the way: git branch -m {name} <other name>",
        ) from exc


def land(
    repo: Repository, name: str, commit: str, *, before: tuple[str, str], synced: set[str] | None = None
) -> str:
    """Create or move the branch `name` to `commit`; if that branch is somebody else's, use the name with a number
    appended. Returns the branch's name. `before` is the branch and the commit at which the run had landed when it last
    ended, or ("", ""). That branch is moved if it is still there and no worktree uses it. `synced` as for
    `update_ref`.

    Raises:
        RepositoryError: as `create_branch`.
    """
    earlier, tip = before
    standing = branch_tip(repo, earlier) if earlier else ""
    if standing and standing in {tip, commit} and (standing == commit or branch_use(repo, earlier) is None):
        if standing != commit:
            update_ref(repo, f"refs/heads/{earlier}", commit, expected=tip, synced=synced)
        return earlier
    # A process that died after it made the branch left it at this commit.
    if branch_tip(repo, name) == commit:
        return name
    if earlier:
        taken = list_refs(repo, "refs/heads/cra/")
        name = next(new for n in itertools.count(2) if f"refs/heads/{(new := f'{name}-{n}')}" not in taken)
    create_branch(repo, name, commit, synced)
    return name


def branch_tip(repo: Repository, name: str) -> str:
    """The commit that the branch names; "" if there is no such branch."""
    return list_refs(repo, f"refs/heads/{name}").get(f"refs/heads/{name}", "")


def delete_branch(repo: Repository, name: str, tip: str) -> None:
    """Delete the branch, which must name the commit `tip`; nothing happens if there is none.

    Raises:
        RepositoryError: a worktree uses it, it names another commit, or its file is a link.
        GitError: git could not delete it.
    """
    if not branch_tip(repo, name):
        return
    use = branch_use(repo, name)
    if use is not None:
        raise RepositoryError(f"{name} is {use.words}", hint=use.remedy)
    ref = f"refs/heads/{name}"
    refuse_linked(repo, ref)
    try:
        repo.git("update-ref", "--no-deref", "-d", "--", ref, require_hex(tip))
    except GitError as exc:
        if branch_tip(repo, name) in {tip, ""}:
            raise  # locked, or not writable
        raise RepositoryError(
            f"{name} has commits of yours on top of the run's result",
            hint=f"to delete them, too: git branch -D {name}",
        ) from exc


def _use(folder: Path, what: str, end: str) -> BranchUse:
    place = shlex.quote(str(folder))
    if folder.is_dir():
        return BranchUse(words=f"{what} in {folder}", remedy=f"first: git -C {place} {end}")
    return BranchUse(
        words=f"{what} in the worktree {folder}, whose folder is missing",
        remedy=f"if it is gone for good: git worktree unlock {place}; git worktree prune",
    )


def _worktrees(repo: Repository) -> Iterator[tuple[str, Path]]:
    """Of each worktree git's folder, relative to the common one with a slash at the end, and the worktree's own."""
    common = repo.common_dir
    yield "", common.parent if common.name == ".git" else common
    for folder in sorted((common / "worktrees").glob("*/")):
        notes = f"worktrees/{folder.name}/"
        where = _lines(common, f"{notes}gitdir")
        yield notes, (folder / where[0]).parent if where else folder


def _lines(top: Path, path: str) -> list[str]:
    """The lines of one of git's files; none if there is no such regular file."""
    try:
        data = safe_open.read_bytes(top, path, max_bytes=MAX_NOTE_BYTES)
    except OSError:
        return []
    return data.decode("utf-8", "surrogateescape").split("\n")
