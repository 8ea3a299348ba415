"""Ignored folders that tests need (virtual environments, node_modules), brought into the worktree."""

import errno
import hashlib
import os
import re
import shutil
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, field

from clean_room_agent import proc
from clean_room_agent.errors import CommandError, RepositoryError
from clean_room_agent.folders import remove_tree
from clean_room_agent.orchestrator.config import FolderMode
from clean_room_agent.safe_open import (
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

COPY_TIMEOUT_S = 600.0
MAX_SCRIPT_BYTES = 1_000_000
MODULES = "node_modules"
CRA_FOLDER = ".clean_room"
LEFT_OUT = NOT_A_FILE | {errno.ENOENT, errno.EISDIR}


def prepare_links(
    worktree: Path, repo_top: Path, names: Sequence[str], *, how: FolderMode, turn: bool = True
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


class Copies(Struct):
    """Linked folders that were brought into a worktree, and each as it was then.

    Tests may write there, and what one attempt left must not decide the next: one in which anything changed is brought
    anew before the next command. Whether it changed is told by times and sizes that a user cannot set (`ctime`), without
    reading a file.
    """

    worktree: Path
    repo_top: Path
    names: tuple[str, ...]
    how: FolderMode
    turn: bool
    states: dict[str, bytes] = field(default_factory=dict)
    """By name of what was brought: the commit may have some of `names` itself, the user's tree may not have them."""

    def bring(self) -> tuple[str, ...]:
        """What the user's tree has and the worktree has not is there; what was done, in words.

        Raises:
            RepositoryError: a name leads out of the repository.
            CommandError: a copy failed.
        """
        before = {name: state_of(self.worktree / name) for name in self.names}
        told = prepare_links(self.worktree, self.repo_top, self.names, how=self.how, turn=self.turn)
        after = {name: state_of(self.worktree / name) for name in self.names}
        self.states = {name: state for name, state in after.items() if state != before[name]}
        return told

    @property
    def brought(self) -> tuple[str, ...]:
        """What a reset must leave alone, relative to the worktree."""
        return tuple(self.states)

    def renew(self) -> tuple[str, ...]:
        """Each copy is as it was; the names of those that were made anew.

        Raises:
            CommandError: a copy cannot be removed or made.
        """
        changed = tuple(
            name for name, state in self.states.items() if state_of(self.worktree / name) != state
        )
        for name in changed:
            _remove(self.worktree, name)
            prepare_links(self.worktree, self.repo_top, (name,), how=self.how, turn=self.turn)
            self.states[name] = state_of(self.worktree / name)
        return changed


def _remove(worktree: Path, name: str) -> None:
    """Nothing stands at `name` any more, whatever its permissions were; what a link there leads to stays."""
    try:
        with hold_parent(worktree, name) as parent:
            remove_tree(parent / Path(name).name)
    except OSError as exc:
        raise CommandError(f"cannot renew the copy of {name}: {exc.strerror}") from exc


def state_of(folder: Path) -> bytes:
    """What changes as soon as a file below the folder is written, made, removed, moved or given another mode; of what is
    no folder, what changes when something else stands there.
    """
    state = hashlib.blake2b(digest_size=16)
    if folder.is_symlink():
        state.update(b"link " + os.fsencode(folder.readlink()))
        return state.digest()
    waiting = [os.fspath(folder)]
    while waiting:
        at = waiting.pop()
        try:
            with os.scandir(at) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
            about = os.lstat(at)
        except OSError as exc:  # gone, or closed to us: another state, whatever it was
            state.update(f"{at} {exc.errno}".encode(errors="surrogateescape"))
            continue
        state.update(
            f"{at} {about.st_ino} {about.st_ctime_ns} {about.st_mode}".encode(errors="surrogateescape")
        )
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
                continue
            one = entry.stat(follow_symlinks=False)
            fields = f"{entry.name} {one.st_ino} {one.st_ctime_ns} {one.st_size} {one.st_mode}"
            state.update(fields.encode(errors="surrogateescape"))
    return state.digest()


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
        package = not os.path.lexists(target) or is_empty_folder(worktree, _inside(name))
        if (repo_top / name).exists() and package and above and name not in strange:
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
                    hint="fix the file's permissions, or take it out of .worktreeinclude",
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
