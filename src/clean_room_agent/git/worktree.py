"""One work tree for a task, outside the repository, put back to a commit between attempts."""

import contextlib
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clean_room_agent.errors import GitError
from clean_room_agent.git.command import names
from clean_room_agent.git.repository import Repository
from clean_room_agent.git.snapshot import GITLINK

GLOB = str.maketrans({character: f"\\{character}" for character in "\\*?[ !#"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree:
    """A linked work tree. `git_dir` was read before anything ran in it; `submodules` are folders kept empty."""

    path: Path
    git_dir: Path
    repo: Repository
    submodules: tuple[str, ...]

    @property
    def pins(self) -> dict[str, str]:
        """The variables that hold git to this work tree and to the repository's own configuration."""
        return {
            "GIT_DIR": str(self.git_dir),
            "GIT_COMMON_DIR": str(self.repo.common_dir),
            "GIT_WORK_TREE": str(self.path),
        }


def add_worktree(repo: Repository, commit: str, where: Path, task_id: str) -> Worktree:
    """A locked work tree of `commit` at `where`, which must not exist or be empty; no branch is checked out.

    Raises:
        GitError: it cannot be made, in git's own words; nothing is left of it.
    """
    reason = f"cra {task_id}"
    try:
        with _one_at_a_time(repo):
            repo.git("worktree", "add", "-q", "--detach", "--lock", "--reason", reason, str(where), commit)
    except GitError as exc:
        raise GitError(
            f"no work tree at {where}: {exc.message}",
            hint="check the folder and the space that is left there",
        ) from exc
    # Read now: what runs in there later may replace it.
    git_dir = Path(os.fsdecode((where / ".git").read_bytes()).removeprefix("gitdir: ").rstrip("\n"))
    listed = names(repo.git("ls-tree", "-r", "-z", "--full-tree", commit))
    submodules = tuple(entry.partition("\t")[2] for entry in listed if entry.startswith(GITLINK))
    return Worktree(path=where, git_dir=git_dir, repo=repo, submodules=submodules)


def stand_on(worktree: Worktree, commit: str) -> None:
    """HEAD of the work tree names `commit`; its files stay as they are, so what differs counts as uncommitted."""
    worktree.repo.git("update-ref", "--no-deref", "HEAD", commit, pins=worktree.pins)


def reset_worktree(worktree: Worktree, commit: str, *, keep: tuple[str, ...] = ()) -> None:
    """The work tree holds `commit` and nothing else, ignored files included, but for the relative paths in `keep`.

    What ran in it may have replaced its `.git` file, its index or its permissions: all that is undone first.

    Raises:
        GitError: it cannot be brought back, in git's own words.
    """
    _restore_link(worktree)
    try:
        _restore_files(worktree, commit, keep)
    except GitError:
        # A broken index or folders without permissions; both are ours to mend, once.
        (worktree.git_dir / "index").unlink(missing_ok=True)
        _open_folders(worktree.path)
        _restore_files(worktree, commit, keep)


def remove_worktree(worktree: Worktree) -> None:
    """Neither the work tree nor git's notes about it are left; whether they were whole does not matter."""
    with _one_at_a_time(worktree.repo):
        for folder in (worktree.path, worktree.git_dir):
            if folder.is_dir() and not folder.is_symlink():
                _open_folders(folder)
                shutil.rmtree(folder)
        with contextlib.suppress(OSError):
            worktree.git_dir.parent.rmdir()


@contextlib.contextmanager
def _one_at_a_time(repo: Repository) -> Iterator[None]:
    """No other run adds or removes a work tree: git fails on one that is half there."""
    folder = os.open(repo.common_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _restore_link(worktree: Worktree) -> None:
    link = worktree.path / ".git"
    content = b"gitdir: " + os.fsencode(worktree.git_dir) + b"\n"
    if link.is_file() and not link.is_symlink() and link.read_bytes() == content:
        return
    if link.is_dir() and not link.is_symlink():
        _open_folders(link)
        shutil.rmtree(link)
    else:
        link.unlink(missing_ok=True)
    link.write_bytes(content)


def _restore_files(worktree: Worktree, commit: str, keep: tuple[str, ...]) -> None:
    git, pins = worktree.repo.git, worktree.pins
    (worktree.git_dir / "index.lock").unlink(missing_ok=True)
    git(
        "-c",
        "core.trustctime=true",
        "-c",
        "core.checkStat=default",
        "read-tree",
        "--reset",
        "-u",
        commit,
        pins=pins,
    )
    for name in worktree.submodules:
        _empty(worktree.path, name)
    git("update-ref", "--no-deref", "HEAD", commit, pins=pins)
    kept = (part for path in keep for part in ("-e", "/" + path.rstrip("/").translate(GLOB)))
    git("clean", "-ffdxq", *kept, pins=pins)


def _empty(top: Path, name: str) -> None:
    folder = top / name
    # Through a link that a test has put in its way, this would reach other folders.
    if folder.is_dir() and folder.resolve() == top.resolve() / name and any(folder.iterdir()):
        _open_folders(folder)
        shutil.rmtree(folder)
        folder.mkdir()


def _open_folders(top: Path) -> None:
    """Every folder below `top`, itself included, lets its owner in; links are not followed."""
    top.chmod(top.stat().st_mode | stat.S_IRWXU)
    for folder, folders, _ in os.walk(top):
        for name in folders:
            path = Path(folder) / name
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | stat.S_IRWXU)
