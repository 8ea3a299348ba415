"""Ignored folders that tests need (virtual environments, node_modules), brought into the worktree."""

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from clean_room_agent import proc
from clean_room_agent.errors import RepositoryError
from clean_room_agent.orchestrator.testing.config import How

COPY_TIMEOUT_S = 600.0
MAX_SCRIPT_BYTES = 1_000_000


def prepare_links(
    worktree: Path, repo_top: Path, names: Sequence[str], *, how: How, turn: bool = True
) -> tuple[str, ...]:
    """Each of `names` that the user's tree has stands in the worktree too; what was done, in words, in that order.

    "copy": the worktree has its own; a virtual environment's scripts and editable installs are turned to the
    worktree, unless `turn` is False because it will stand in the repository's place. "link": a symbolic link, so what tests write there is written in the user's tree, and what such a folder
    refers to by relative links (workspace packages) is the user's. What stands there already stays. The user's tree
    is not changed. Calling it again after the worktree was cleaned restores what went.

    Raises:
        RepositoryError: a name leads out of the repository.
        CommandError: the copy failed.
    """
    done: list[str] = []
    for name in names:
        source, target = repo_top / name, worktree / name
        _refuse_outside(name)
        if not os.path.lexists(source) or os.path.lexists(target):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(source.resolve())
            done.append(f"{name}: linked to {source.resolve()}, as in your tree")
        elif how == "link":
            target.symlink_to(source)
            done.append(f"{name}: linked to yours; tests can change it")
        else:
            _copy(source, target)
            turned = _turn(target, repo_top, worktree) if turn else 0
            done.append(f"{name}: copied" + (f", {turned} files turned to the worktree" if turned else ""))
    return tuple(done)


def links_to_mount(worktree: Path, repo_top: Path, names: Sequence[str]) -> tuple[tuple[str, Path], ...]:
    """Those of `names` that the user's tree has and the worktree has not, each with where it really stands.

    What would be reached by way of a link in the worktree is left out.

    Raises:
        RepositoryError: a name leads out of the repository.
    """
    found: list[tuple[str, Path]] = []
    for name in names:
        _refuse_outside(name)
        target = worktree / name
        above = target.parent.resolve() == worktree.resolve() / Path(name).parent
        if (repo_top / name).exists() and not os.path.lexists(target) and above:
            found.append((name, (repo_top / name).resolve()))
    return tuple(found)


def copy_included(worktree: Path, repo_top: Path, paths: Sequence[str]) -> None:
    """The files at the relative `paths` stand in the worktree as they do in the user's tree; links and what is gone
    there are left out, and so is what would be reached by way of a link in the worktree.
    """
    for path in paths:
        source, target = repo_top / path, worktree / path
        if source.is_symlink() or not source.is_file() or target.is_symlink():
            continue
        if not target.parent.resolve().is_relative_to(worktree.resolve()):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def _refuse_outside(name: str) -> None:
    if Path(name).is_absolute() or ".." in Path(name).parts or name in {"", "."}:
        raise RepositoryError(
            f"[worktree].link names {name!r}, which is not inside the repository",
            hint="name folders relative to the repository's top",
        )


def _copy(source: Path, target: Path) -> None:
    """A copy with links kept as links, sharing blocks where the file system can."""
    if sys.platform == "linux":
        command = ("cp", "-a", "--reflink=auto", "--", str(source), str(target))
        proc.run(command, cwd=target.parent, timeout=COPY_TIMEOUT_S, contain=False)
    elif source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)


def _turn(folder: Path, repo_top: Path, worktree: Path) -> int:
    """In the copied virtual environment `folder`, paths of the user's tree become the worktree's; how many files.

    Only where tools write absolute paths: scripts in `bin`, and the files by which an editable install is found.
    """
    if not (folder / "pyvenv.cfg").is_file():
        return 0
    ours = re.compile(re.escape(os.fsencode(repo_top)) + rb"(?=[/\s'\"]|\Z)")
    packages = "lib/python3*/site-packages/"
    turned = 0
    for pattern in ("bin/*", packages + "*.pth", packages + "*.egg-link", packages + "__editable__*"):
        for file in sorted(folder.glob(pattern)):
            if file.is_symlink() or not file.is_file() or file.stat().st_size > MAX_SCRIPT_BYTES:
                continue
            data = file.read_bytes()
            moved = data if b"\0" in data else ours.sub(lambda _: os.fsencode(worktree), data)
            if moved != data:
                file.write_bytes(moved)
                turned += 1
    return turned
