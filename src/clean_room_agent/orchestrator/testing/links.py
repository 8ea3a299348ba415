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


def prepare_links(worktree: Path, repo_top: Path, names: Sequence[str], *, how: How) -> tuple[str, ...]:
    """Each of `names` that the user's tree has stands in the worktree too; what was done, in words, in that order.

    "copy": the worktree has its own; a virtual environment's scripts and editable installs are turned to the
    worktree. "link": a symbolic link, so what tests write there is written in the user's tree, and what such a folder
    refers to by relative links (workspace packages) is the user's. What stands there already stays. The user's tree
    is not changed. Calling it again after the worktree was cleaned restores what went.

    Raises:
        RepositoryError: a name leads out of the repository.
        CommandError: the copy failed.
    """
    done: list[str] = []
    for name in names:
        source, target = repo_top / name, worktree / name
        if Path(name).is_absolute() or ".." in Path(name).parts or name in {"", "."}:
            raise RepositoryError(
                f"[worktree].link names {name!r}, which is not inside the repository",
                hint="name folders relative to the repository's top",
            )
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
            turned = _turn(target, repo_top, worktree)
            done.append(f"{name}: copied" + (f", {turned} files turned to the worktree" if turned else ""))
    return tuple(done)


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
