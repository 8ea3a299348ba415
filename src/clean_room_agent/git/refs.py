"""Writes the refs of results so that they and their commits survive a power cut, and says what uses a branch in any worktree."""

import functools
import itertools
import shlex
from collections.abc import Mapping
from pathlib import Path

from clean_room_agent.errors import GitError, RepositoryError
from clean_room_agent.file_contents import sync_file, sync_folder
from clean_room_agent.git.command import one_line, require_hex
from clean_room_agent.git.repository import Repository

COMPARED = ("-r", "-t", "-z", "--raw", "--root", "--no-abbrev", "--no-renames", "--always", "--format=%T")
"""How a commit is compared with its parent: its tree, then all files and folders that it has otherwise, by their objects'
names.
"""
KEPT_SYNCED = 1000
USERS_REFS = ("refs/heads", "refs/remotes", "refs/tags", "refs/stash")
RUNS_BRANCHES = "refs/heads/cra/"


@functools.lru_cache(maxsize=KEPT_SYNCED)
def sync_commit(repo: Repository, commit: str) -> None:
    """Sync the objects that `commit` adds to its parents to disk, once; call it before a ref names the commit."""
    require_hex(commit)
    compared = repo.git("diff-tree", *COMPARED, "--end-of-options", commit).decode("utf-8", "surrogateescape")
    tree, *listed = compared.split("\0")
    added = {line.split(" ")[3] for line in listed if line.lstrip("\n").startswith(":")}
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
    """Make `ref` itself name `commit`, durably, if it names `expected` (zeros: nothing) until then.

    Raises:
        RepositoryError: the ref's file, or one of its folders, is a link.
        GitError: it named something else.
    """
    refuse_linked(repo, ref)
    repo.git("update-ref", "--no-deref", "--", ref, require_hex(commit), require_hex(expected))
    folder = (repo.common_dir / ref).parent
    while folder.is_relative_to(repo.common_dir) and folder.is_dir():
        sync_folder(folder)
        folder = folder.parent


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
                    f"{path} is a link: writing to it would change other refs",
                    hint=f"remove it: rm {path}",
                )


def update_ref(repo: Repository, ref: str, commit: str, *, expected: str) -> None:
    """Make `ref` name `commit`, durably, if it names `expected` until then; an empty `expected` means that it must not
    exist.

    Raises:
        GitError: it named something else.
    """
    sync_commit(repo, commit)
    write_ref(repo, ref, commit, expected or repo.zero)


def keep_commit(repo: Repository, ref: str, commit: str) -> str:
    """The commit that `ref` names: `commit`, or one with the same tree and parents that it named before.

    Raises:
        GitError: somebody else has moved the ref at the same time.
    """
    before = list_refs(repo, ref).get(ref, "")
    if before and _tree_and_parents(repo, before) == _tree_and_parents(repo, commit):
        return before
    update_ref(repo, ref, commit, expected=before)
    return commit


def _tree_and_parents(repo: Repository, commit: str) -> str:
    return one_line(repo.git("show", "-s", "--format=%T %P", "--end-of-options", require_hex(commit)))


def delete_ref(repo: Repository, ref: str) -> None:
    """Delete the ref; it need not exist."""
    refuse_linked(repo, ref)
    repo.git("update-ref", "--no-deref", "-d", "--", ref)


def list_refs(repo: Repository, prefix: str) -> Mapping[str, str]:
    """Full name -> object id of the refs below `prefix` (such as `refs/cra/<task>`), sorted by name."""
    found = one_line(repo.git("for-each-ref", "--format=%(refname) %(objectname)", "--", prefix)).splitlines()
    return dict(sorted((name, value) for name, _, value in (line.partition(" ") for line in found)))


def with_package(repo: Repository, folder: str) -> Repository:
    """The repository, in which branches `folder`/... can be made.

    Raises:
        RepositoryError: a branch is named `folder` itself; git keeps either one or the other.
    """
    if f"refs/heads/{folder}" in list_refs(repo, f"refs/heads/{folder}"):
        raise RepositoryError(
            f"a branch named {folder} is in the way of {folder}/<id>, the branches of results",
            hint=f"rename it: git branch -m {folder} <other name>",
        )
    return repo


def is_merged(repo: Repository, commit: str) -> bool:
    """Whether a branch, remote or tag that is not a run's contains the commit."""
    holding = one_line(
        repo.git("for-each-ref", "--format=%(refname)", "--contains", require_hex(commit), "--", *USERS_REFS)
    )
    return any(not name.startswith(RUNS_BRANCHES) for name in holding.split())


def using_worktree(repo: Repository, name: str) -> Path | None:
    """The worktree that has the branch checked out; also one whose folder is missing, which may be on a disk that is not
    mounted. One that rebases or bisects the branch is not found: HEAD is detached there.
    """
    ref = f"refs/heads/{name}"
    place = one_line(repo.git("for-each-ref", "--format=%(worktreepath)", "--", ref)).strip("\n")
    return Path(place) if place else None


def create_branch(repo: Repository, name: str, commit: str) -> None:
    """Create the branch `name` at `commit`, durably; HEAD does not move.

    Raises:
        RepositoryError: the branch exists, another one is in its way, or the name is invalid.
    """
    try:
        repo.git("check-ref-format", f"refs/heads/{name}")
        update_ref(repo, f"refs/heads/{name}", commit, expected="")
    except GitError as exc:
        raise RepositoryError(
            f"cannot make the branch {name}: {exc.message}",
            hint=f"rename or delete the one in the way: git branch -m {name} <other name>",
        ) from exc


def land(repo: Repository, name: str, commit: str, *, before: tuple[str, str]) -> str:
    """Create or move the branch `name` to `commit`; if that branch is somebody else's, use the name with a number
    appended. Returns the branch's name. `before` is the branch and the commit at which the run had landed when it last
    ended, or ("", ""). That branch is moved if it is still there and no worktree uses it.

    Raises:
        RepositoryError: as `create_branch`.
    """
    earlier, tip = before
    standing = branch_tip(repo, earlier) if earlier else ""
    if standing == commit:
        return earlier
    if standing == tip != "" and using_worktree(repo, earlier) is None:
        update_ref(repo, f"refs/heads/{earlier}", commit, expected=tip)
        return earlier
    # A process that died after it made the branch left it at this commit.
    if branch_tip(repo, name) == commit:
        return name
    if earlier:
        taken = list_refs(repo, "refs/heads/cra/")
        name = next(new for n in itertools.count(2) if f"refs/heads/{(new := f'{name}-{n}')}" not in taken)
    create_branch(repo, name, commit)
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
    user = using_worktree(repo, name)
    if user is not None and user.is_dir():
        hint = f"first: git -C {shlex.quote(str(user))} switch --detach"
        raise RepositoryError(f"{name} is checked out in {user}", hint=hint)
    if user is not None:
        raise RepositoryError(
            f"{name} is checked out in the worktree {user}, whose folder is missing",
            hint=f"if it is gone for good: git worktree unlock {shlex.quote(str(user))}; git worktree prune",
        )
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
