"""Applies a commit's changes to the user's files: all of them, or none."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from clean_room_agent import safe_open
from clean_room_agent.errors import GitError, RepositoryError
from clean_room_agent.folders import temporary_folder
from clean_room_agent.git.command import names, require_hex
from clean_room_agent.git.commits import scratch_index
from clean_room_agent.git.history import ChangedPath, changed_paths, diff_bytes
from clean_room_agent.git.repository import Repository, as_configured_now


def apply_to_tree(repo: Repository, base: str, commit: str) -> tuple[str, ...]:
    """Apply the changes from `base` to `commit` to the user's files, and return the changed paths, sorted. The index is
    untouched.

    All or nothing: first every path is compared with `base`, then git checks the whole patch; if it still fails
    half-way, as on a full disk, the changes are undone.

    Raises:
        RepositoryError: files differ from those of `base`, all of them named; or the patch does not apply.
    """
    return _bring(repo, base, commit, since="the run started", done="applied", else_="merge the branch")


def take_back(repo: Repository, base: str, commit: str) -> tuple[str, ...]:
    """Undo the changes from `base` to `commit` in the user's files: the reverse of `apply_to_tree`.

    Raises:
        RepositoryError: files differ from those of `commit`, all of them named; or the patch does not apply.
    """
    by_hand = f"undo the rest by hand: git diff {base[:12]} shows it"
    return _bring(repo, commit, base, since="it was applied", done="taken back", else_=by_hand)


def _bring(repo: Repository, old: str, new: str, *, since: str, done: str, else_: str) -> tuple[str, ...]:
    repo = as_configured_now(repo)
    changed = changed_paths(repo, old, new)
    existing = tuple(entry.path for entry in changed if entry.status != "A")
    gone = {entry.path for entry in changed if entry.status == "D"}
    added = (entry.path for entry in changed if entry.status == "A")
    moved_on = sorted({*_differing(repo, old, existing), *(p for p in added if _taken(repo.top, p, gone))})
    if moved_on:
        raise RepositoryError(
            f"changed here since {since}: {', '.join(moved_on)}; nothing was {done}",
            hint=f"put these files back, or {else_}",
        )
    shared = [path for path in existing if _has_other_names(repo, path)]
    if shared:
        raise RepositoryError(
            f"hard links share their content with other files: {', '.join(shared)}; nothing was {done}",
            hint=f"break the links (cp -p a b && mv b a), or {else_}",
        )
    if changed:
        patch = diff_bytes(repo, old, new)
        try:
            repo.git("apply", "--whitespace=nowarn", "--check", "-", input=patch)
            with _put_back_on_failure(repo, changed):
                repo.git("apply", "--whitespace=nowarn", "-", input=patch)
        except GitError as exc:
            raise RepositoryError(
                f"the change does not apply: {exc.message}", hint=exc.hint or else_
            ) from exc
    return tuple(entry.path for entry in changed)


def _taken(top: Path, path: str, gone: set[str]) -> bool:
    """Whether something is in the way of a file to be created, or of one of its folders."""
    above = [str(parent) for parent in Path(path).parents if str(parent) != "."]
    in_the_way = any(
        os.path.lexists(top / name) and (not (top / name).is_dir() or (top / name).is_symlink())
        for name in above
        if name not in gone
    )
    return in_the_way or os.path.lexists(top / path)


@contextlib.contextmanager
def _put_back_on_failure(repo: Repository, changed: tuple[ChangedPath, ...]) -> Iterator[None]:
    """Restore the changed files, and remove new ones, if the body raises."""
    top = repo.top
    with temporary_folder("apply") as folder:
        files = [entry.path for entry in changed if safe_open.is_file(top, entry.path)]
        links = {
            entry.path: (top / entry.path).readlink() for entry in changed if (top / entry.path).is_symlink()
        }
        for path in files:
            safe_open.copy_file(top, folder, path)
        missing = {
            parent
            for entry in changed
            for parent in (top / entry.path).parents
            if not os.path.lexists(parent)
        }
        try:
            yield
        except BaseException:
            for path in sorted({entry.path for entry in changed} - set(files)):
                with contextlib.suppress(OSError):
                    (top / path).unlink()
            for parent in sorted(missing, reverse=True):
                with contextlib.suppress(OSError):
                    parent.rmdir()
            for path in files:
                with contextlib.suppress(OSError):
                    (top / path).rmdir()  # a file that was to become a folder
                safe_open.copy_file(folder, top, path)
            for path, goal in links.items():
                safe_open.make_link(top, path, goal)
            raise


def _has_other_names(repo: Repository, path: str) -> bool:
    try:
        found = safe_open.status(repo.top, path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_nlink > 1


def _differing(repo: Repository, base: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Those of `paths` that differ between the working tree and `base`, apart from line endings."""
    if not paths:
        return ()
    entries = repo.git("ls-tree", "-r", "-z", "--full-tree", "--", require_hex(base), *paths)
    with scratch_index(repo, None) as pins:
        repo.git("update-index", "-z", "--index-info", pins=pins, input=entries)
        repo.git("update-index", "-q", "--refresh", pins=pins, ok=(0, 1))
        return names(repo.git("diff-files", "-z", "--name-only", "--no-renames", pins=pins))
