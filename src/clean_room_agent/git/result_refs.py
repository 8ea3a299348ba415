"""The refs of results: those under `refs/cra/` and one new branch; and the space that they keep in git."""

import itertools
from collections.abc import Collection, Mapping

from clean_room_agent.errors import GitError, RepositoryError
from clean_room_agent.git.command import one_line, require_hex
from clean_room_agent.git.fsync import refuse_linked, sync_commit, write_ref
from clean_room_agent.git.repository import Repository


def update_ref(repo: Repository, ref: str, commit: str, *, expected: str) -> None:
    """`ref` names `commit`, also after a power cut, and named `expected` before; an empty `expected` means that it did not
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
    if before and _content(repo, before) == _content(repo, commit):
        return before
    update_ref(repo, ref, commit, expected=before)
    return commit


def _content(repo: Repository, commit: str) -> str:
    return one_line(repo.git("show", "-s", "--format=%T %P", "--end-of-options", require_hex(commit)))


def delete_ref(repo: Repository, ref: str) -> None:
    """There is no such ref."""
    refuse_linked(repo, ref)
    repo.git("update-ref", "--no-deref", "-d", "--", ref)


def list_refs(repo: Repository, prefix: str) -> Mapping[str, str]:
    """Full name -> object name of the refs below `prefix` (such as `refs/cra/<task>`), sorted by name."""
    found = one_line(repo.git("for-each-ref", "--format=%(refname) %(objectname)", "--", prefix)).splitlines()
    return dict(sorted((name, value) for name, _, value in (line.partition(" ") for line in found)))


def with_package(repo: Repository, folder: str) -> Repository:
    """The repository, in which branches `folder`/... can be made.

    Raises:
        RepositoryError: a branch is named `folder` itself; git keeps either one or the other.
    """
    if f"refs/heads/{folder}" in list_refs(repo, f"refs/heads/{folder}"):
        raise RepositoryError(
            f"a branch named {folder} stands in the way of {folder}/<id>, where results come to stand",
            hint=f"rename it: git branch -m {folder} <other name>",
        )
    return repo


def create_branch(repo: Repository, name: str, commit: str) -> None:
    """Create the branch `name` at `commit`, durably; HEAD does not move.

    Raises:
        RepositoryError: there is such a branch, another one stands in its way, or the name is not valid.
    """
    try:
        repo.git("check-ref-format", f"refs/heads/{name}")
        sync_commit(repo, commit)
        write_ref(repo, f"refs/heads/{name}", commit, repo.zero)
    except GitError as exc:
        raise RepositoryError(
            f"cannot make the branch {name}: {exc.message}",
            hint=f"rename or delete the one in the way: git branch -m {name} <other name>",
        ) from exc


def land(repo: Repository, name: str, commit: str, *, before: tuple[str, str]) -> str:
    """Create or move the branch `name` to `commit`; if that branch is somebody else's, use the name with a number
    appended. The branch's name.

    `before` is the branch and the commit that the run had landed at when it ended the last time; ("", "") for neither.
    That branch goes on where it still stands there and nobody has it checked out.

    Raises:
        RepositoryError: as `create_branch`.
    """
    earlier, tip = before
    standing = branch_tip(repo, earlier) if earlier else ""
    if standing and standing in {tip, commit} and (standing == commit or not is_checked_out(repo, earlier)):
        if standing != commit:
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
    """The commit that the branch names; "" where there is none."""
    return list_refs(repo, f"refs/heads/{name}").get(f"refs/heads/{name}", "")


def is_checked_out(repo: Repository, name: str) -> bool:
    """Whether a work tree of the repository is on the branch."""
    return bool(
        one_line(repo.git("for-each-ref", "--format=%(worktreepath)", "--", f"refs/heads/{name}")).strip()
    )


USERS_REFS = ("refs/heads", "refs/remotes", "refs/tags", "refs/stash")
RUNS_BRANCHES = "refs/heads/cra/"


def bytes_kept_by(repo: Repository, commits: Collection[str]) -> int:
    """Bytes of the objects that git keeps for `commits` alone: no branch, remote or tag needs them; 0 where git cannot say."""
    if not commits:
        return 0
    own = {require_hex(commit) for commit in commits}
    users = {name for prefix in USERS_REFS for name in list_refs(repo, prefix).values()}
    wanted = "".join(f"{name}\n" for name in sorted(own)) + "".join(f"^{name}\n" for name in sorted(users))
    try:
        told = repo.git("rev-list", "--objects", "--disk-usage", "--stdin", input=wanted.encode())
    except GitError:  # an object is missing, as in a damaged or partial clone
        return 0
    return int(one_line(told))


def is_merged(repo: Repository, commit: str) -> bool:
    """Whether a branch, remote or tag that is not a run's holds the commit."""
    holding = one_line(
        repo.git("for-each-ref", "--format=%(refname)", "--contains", require_hex(commit), "--", *USERS_REFS)
    )
    return any(not name.startswith(RUNS_BRANCHES) for name in holding.split())
