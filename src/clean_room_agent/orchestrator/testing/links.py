"""Ignored folders that tests need (virtual environments, node_modules), brought into the worktree."""

import errno
import os
import re
import shutil
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from clean_room_agent import proc
from clean_room_agent.beneath import (
    NOT_A_FILE,
    copy_file,
    hold_parent,
    is_empty_folder,
    is_file,
    make_link,
    read_bytes,
    status,
    write_bytes,
)
from clean_room_agent.errors import RepositoryError
from clean_room_agent.orchestrator.testing.config import How

COPY_TIMEOUT_S = 600.0
MAX_SCRIPT_BYTES = 1_000_000
MODULES = "node_modules"
CRA_FOLDER = ".clean_room"
LEFT_OUT = NOT_A_FILE | {errno.ENOENT, errno.EISDIR}


def prepare_links(
    worktree: Path, repo_top: Path, names: Sequence[str], *, how: How, turn: bool = True
) -> tuple[str, ...]:
    """Each of `names` that the user's tree has stands in the worktree too; what was done, in words, in that order.

    "copy": the worktree has its own; a virtual environment's scripts and editable installs are turned to the
    worktree, unless `turn` is False because it will stand in the repository's place. "link": a symbolic link, so what
    tests write there is written in the user's tree, and what such a folder refers to by relative links (workspace
    packages) is the user's. What stands there already stays, but for an empty folder, such as a submodule's, which is
    filled by a copy in any case: a reset would undo a link. The user's tree is not changed. Calling it again after the
    worktree was cleaned restores what went.

    Raises:
        RepositoryError: a name leads out of the repository.
        CommandError: the copy failed.
    """
    done: list[str] = []
    for name in names:
        source, path = repo_top / name, _inside(name)
        hollow = is_empty_folder(worktree, path)
        if not os.path.lexists(source) or (os.path.lexists(worktree / path) and not hollow):
            continue
        try:
            if source.is_symlink() and not hollow:
                make_link(worktree, path, source.resolve())
                done.append(f"{name}: linked to {source.resolve()}, as in your tree")
            elif how == "link" and not hollow:
                make_link(worktree, path, source)
                done.append(f"{name}: linked to yours; tests can change it")
            else:
                _copy(source, worktree, path)
                turned = _turn(worktree, path, repo_top) if turn else 0
                done.append(
                    f"{name}: copied" + (f", {turned} files turned to the worktree" if turned else "")
                )
        except OSError as exc:
            done.append(f"{name}: left out ({exc.strerror}: a link of the repository may be in the way)")
    return tuple(done)


def links_to_mount(worktree: Path, repo_top: Path, names: Sequence[str]) -> tuple[tuple[str, Path], ...]:
    """Those of `names` that the user's tree has and the worktree has not, each with where it really stands.

    An empty folder, such as a submodule's, is nothing. What would be reached by way of a link in the worktree is left
    out, and so are `strange_links`.

    Raises:
        RepositoryError: a name leads out of the repository.
    """
    found: list[tuple[str, Path]] = []
    strange = {name for name, _ in strange_links(repo_top, names)}
    for name in names:
        target = worktree / _inside(name)
        above = target.parent.resolve() == worktree.resolve() / Path(name).parent
        room = not os.path.lexists(target) or is_empty_folder(worktree, _inside(name))
        if (repo_top / name).exists() and room and above and name not in strange:
            found.append((name, (repo_top / name).resolve()))
    return tuple(found)


def strange_links(repo_top: Path, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Those of `names` that are links to something else than what tools keep elsewhere and link to, with the reason.

    That is an environment of Python's (by its `pyvenv.cfg`, conda's by its `conda-meta`) or a folder that is called
    `node_modules`: the link came with the repository, perhaps, and would show whatever it names.
    """
    found = []
    for name in names:
        try:
            goal = (repo_top / name).resolve()
        except (OSError, RuntimeError):  # a circle
            continue
        known = (
            is_file(goal, "pyvenv.cfg") or (goal / "conda-meta").is_dir() or goal.name == MODULES
        ) and not {".git", CRA_FOLDER} & {*goal.parts}
        if goal.exists() and goal != repo_top.resolve() / name and not known:
            found.append((name, f"a link to {goal}, which is neither an environment nor {MODULES}"))
    return tuple(found)


def copy_included(worktree: Path, repo_top: Path, paths: Sequence[str]) -> None:
    """The files at the relative `paths` stand in the worktree as they do in the user's tree; links and what is gone
    there are left out, and so is what would be reached by way of a link in the worktree.
    """
    for path in paths:
        if (worktree / path).is_symlink():
            continue
        try:
            copy_file(repo_top, worktree, path)
        except OSError as exc:
            if exc.errno not in LEFT_OUT:
                raise RepositoryError(
                    f"cannot copy {path}, which .worktreeinclude names: {exc.strerror}",
                    hint="mend the file's permissions, or take it out of .worktreeinclude",
                ) from exc


def _inside(name: str) -> str:
    """The name as a path beneath the repository's top."""
    if Path(name).is_absolute() or ".." in Path(name).parts or not Path(name).parts:
        raise RepositoryError(
            f"[worktree].link names {name!r}, which is not inside the repository",
            hint="name folders relative to the repository's top",
        )
    return Path(name).as_posix()


def _copy(source: Path, worktree: Path, path: str) -> None:
    """A copy with links kept as links, sharing blocks where the file system can."""
    with hold_parent(worktree, path) as folder:
        target = folder / source.name
        if sys.platform == "linux":
            command = ("cp", "-a", "--reflink=auto", "-T", "--", str(source), str(target))
            proc.run(command, cwd=worktree, timeout=COPY_TIMEOUT_S, contain=False)
        elif source.is_dir():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)


def _turn(worktree: Path, path: str, repo_top: Path) -> int:
    """In the virtual environment copied to `path`, paths of the user's tree become the worktree's; how many files.

    Only where tools write absolute paths: scripts in `bin`, and the files by which an editable install is found.
    """
    folder = worktree / path
    if not is_file(worktree, f"{path}/pyvenv.cfg"):
        return 0
    ours = re.compile(re.escape(os.fsencode(repo_top)) + rb"(?=[/\s'\"]|\Z)")
    packages = "lib/python3*/site-packages/"
    turned = 0
    for pattern in ("bin/*", packages + "*.pth", packages + "*.egg-link", packages + "__editable__*"):
        for file in sorted(folder.glob(pattern)):
            inner = file.relative_to(worktree).as_posix()
            if not is_file(worktree, inner):
                continue
            data = read_bytes(worktree, inner, max_bytes=MAX_SCRIPT_BYTES + 1)
            if len(data) > MAX_SCRIPT_BYTES or b"\0" in data:
                continue
            moved = ours.sub(lambda _: os.fsencode(worktree), data)
            if moved != data:
                write_bytes(
                    worktree, inner, moved, mode=stat.S_IMODE(status(worktree, inner).st_mode) & 0o777
                )
                turned += 1
    return turned
