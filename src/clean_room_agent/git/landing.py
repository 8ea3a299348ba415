"""Where results come to stand: refs that only we make, one new branch, and, if asked for, the user's files."""

import os
from collections.abc import Mapping

from clean_room_agent.errors import GitError, RepositoryError
from clean_room_agent.git.command import names, one_line
from clean_room_agent.git.history import changed_paths, diff_bytes
from clean_room_agent.git.repository import Repository
from clean_room_agent.git.scratch import scratch_index


def update_ref(repo: Repository, ref: str, commit: str, *, expected: str) -> None:
    """`ref` names `commit`, and named `expected` before; an empty `expected` means that it did not exist.

    Raises:
        GitError: it named something else.
    """
    repo.git("update-ref", "--no-deref", ref, commit, expected or repo.zero)


def delete_ref(repo: Repository, ref: str) -> None:
    """There is no such ref."""
    repo.git("update-ref", "--no-deref", "-d", ref)


def list_refs(repo: Repository, prefix: str) -> Mapping[str, str]:
    """Full name -> object name of the refs below `prefix` (such as `refs/cra/<task>`), sorted by name."""
    found = one_line(repo.git("for-each-ref", "--format=%(refname) %(objectname)", prefix)).splitlines()
    return dict(sorted((name, value) for name, _, value in (line.partition(" ") for line in found)))


def create_branch(repo: Repository, name: str, commit: str) -> None:
    """A new branch `name` stands at `commit`; HEAD stays where it is.

    Raises:
        RepositoryError: there is such a branch, another one stands in its way, or the name is not valid.
    """
    try:
        repo.git("check-ref-format", f"refs/heads/{name}")
        repo.git("update-ref", f"refs/heads/{name}", commit, repo.zero)
    except GitError as exc:
        raise RepositoryError(
            f"cannot make the branch {name}: {exc.message}",
            hint=f"rename or delete the one in the way: git branch -m {name} <other name>",
        ) from exc


def apply_to_tree(repo: Repository, base: str, commit: str) -> tuple[str, ...]:
    """The user's files now hold what changed from `base` to `commit`; the paths, sorted. The index is untouched.

    All or nothing: first every path is compared with `base`, then git checks the whole patch.

    Raises:
        RepositoryError: files are not what `base` has, all of them named; or the patch does not fit.
    """
    changed = changed_paths(repo, base, commit)
    existing = tuple(entry.path for entry in changed if entry.status != "A")
    added = (entry.path for entry in changed if entry.status == "A")
    moved_on = sorted(
        {*_differing(repo, base, existing), *(p for p in added if os.path.lexists(repo.top / p))}
    )
    if moved_on:
        raise RepositoryError(
            f"changed here since the run started: {', '.join(moved_on)}; nothing was applied",
            hint="put these files back, or merge the branch",
        )
    if changed:
        patch = diff_bytes(repo, base, commit)
        try:
            repo.git("apply", "--whitespace=nowarn", "--check", "-", input=patch)
            repo.git("apply", "--whitespace=nowarn", "-", input=patch)
        except GitError as exc:
            raise RepositoryError(f"the change does not fit: {exc.message}", hint="merge the branch") from exc
    return tuple(entry.path for entry in changed)


def _differing(repo: Repository, base: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Those of `paths` that do not stand in the work tree as `base` has them, line ends aside."""
    if not paths:
        return ()
    entries = repo.git("ls-tree", "-r", "-z", "--full-tree", base, "--", *paths)
    with scratch_index(repo, None) as pins:
        repo.git("update-index", "-z", "--index-info", pins=pins, input=entries)
        repo.git("update-index", "-q", "--refresh", pins=pins, ok=(0, 1))
        return names(repo.git("diff-files", "-z", "--name-only", "--no-renames", pins=pins))
