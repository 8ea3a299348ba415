"""Brings ignored folders that tests need (virtual environments, node_modules) into the worktree."""

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
from clean_room_agent.artifacts.names import counted
from clean_room_agent.errors import CommandError, RepositoryError
from clean_room_agent.folders import remove_tree
from clean_room_agent.orchestrator.run_config import FolderMode
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
    """Bring each of `names` that the user's tree has into the worktree; returns what was done, in words, in that order.

    "copy": the worktree gets its own; paths in a virtual environment's scripts and editable installs are changed to the
    worktree, unless `turn` is False because it will be mounted in the repository's place. "link": a symbolic link, so
    what tests write there is written in the user's tree, and what such a folder refers to by relative links (workspace
    packages) is the user's. What exists already stays, except for an empty folder, such as a submodule's, which is
    always filled by a copy, since a reset would undo a link. The user's tree is not changed. Calling it again after the
    worktree was cleaned restores what was removed.

    Raises:
        RepositoryError: a name leads outside the repository.
        CommandError: the copy failed.
    """
    done: list[str] = []
    for name in names:
        source, path = repo_top / name, _relative_name(name)
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
                turned = _rewrite_paths(worktree, path, repo_top) if turn else 0
                more = f", {counted(turned, 'file')} turned to the worktree" if turned else ""
                done.append(f"{name}: copied{more}")
        except OSError as exc:
            done.append(f"{name}: left out ({exc.strerror}: a link of the repository may be in the way)")
    return tuple(done)


class Copies(Struct):
    """Linked folders that were copied into a worktree, with the state of each at that time.

    Tests may write there, and one attempt must not affect the next, so a copy in which anything changed is renewed
    before the next command. Changes are detected by sizes and times that a user cannot set (`ctime`), without reading
    files.
    """

    worktree: Path
    repo_top: Path
    names: tuple[str, ...]
    how: FolderMode
    turn: bool
    states: dict[str, bytes] = field(default_factory=dict)
    """By name, for those that were copied, which a reset must leave alone: the commit may have some of `names` itself, or the
    user's tree may lack them.
    """

    def bring(self) -> tuple[str, ...]:
        """Copy what the user's tree has and the worktree lacks; returns what was done, in words.

        Raises:
            RepositoryError: a name leads outside the repository.
            CommandError: a copy failed.
        """
        before = {name: state_of(self.worktree / name) for name in self.names}
        told = prepare_links(self.worktree, self.repo_top, self.names, how=self.how, turn=self.turn)
        after = {name: state_of(self.worktree / name) for name in self.names}
        self.states = {name: state for name, state in after.items() if state != before[name]}
        return told

    def renew(self) -> tuple[str, ...]:
        """Restore each copy that changed; returns the names of the renewed ones.

        Raises:
            CommandError: a copy cannot be removed or created.
        """
        states = self.states.items()
        changed = tuple(name for name, state in states if state_of(self.worktree / name) != state)
        for name in changed:
            _remove_path(self.worktree, name)
            prepare_links(self.worktree, self.repo_top, (name,), how=self.how, turn=self.turn)
            self.states[name] = state_of(self.worktree / name)
        return changed


def _remove_path(worktree: Path, name: str) -> None:
    """Remove what is at `name`, whatever its permissions; the target of a link stays."""
    try:
        with hold_parent(worktree, name) as parent:
            remove_tree(parent / Path(name).name)
    except OSError as exc:
        raise CommandError(f"cannot renew the copy of {name}: {exc.strerror}") from exc


def state_of(folder: Path) -> bytes:
    """A value that changes if a file below the folder is written, created, removed, moved or gets another mode; for
    anything but a folder, one that changes if it is replaced.
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
    """Those of `names` that the user's tree has and the worktree lacks, each with its real path.

    An empty folder, such as a submodule's, does not count. Paths through a link in the worktree are left out, and so
    are `strange_links`.

    Raises:
        RepositoryError: a name leads outside the repository.
    """
    found: list[tuple[str, Path]] = []
    strange = {name for name, _ in strange_links(repo_top, names)}
    for name in names:
        target = worktree / _relative_name(name)
        above = target.parent.resolve() == worktree.resolve() / Path(name).parent
        package = not os.path.lexists(target) or is_empty_folder(worktree, _relative_name(name))
        if (repo_top / name).exists() and package and above and name not in strange:
            found.append((name, (repo_top / name).resolve()))
    return tuple(found)


def strange_links(repo_top: Path, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Those of `names` that link to something other than what tools link to, with the reason.

    Allowed are a Python environment (with a `pyvenv.cfg`, or conda's `conda-meta`) and a folder named `node_modules`.
    Any other link may have come with the repository, and would expose whatever it names.
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
    """Copy the files at the relative `paths` from the user's tree to the worktree, without links, missing files, and
    paths through a link in the worktree.
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


def _relative_name(name: str) -> str:
    """The name as a path below the repository's top."""
    if Path(name).is_absolute() or ".." in Path(name).parts or not Path(name).parts:
        raise RepositoryError(
            f"[worktree].link names {name!r}, which is not inside the repository",
            hint="name folders relative to the repository's top",
        )
    return Path(name).as_posix()


def _copy(source: Path, worktree: Path, path: str) -> None:
    """Copy with links kept as links, sharing blocks if the file system can."""
    with hold_parent(worktree, path) as folder:
        target = folder / source.name
        if sys.platform == "linux":
            command = ("cp", "-a", "--reflink=auto", "-T", "--", str(source), str(target))
            proc.run(command, cwd=worktree, timeout=COPY_TIMEOUT_S, contain=False)
        elif source.is_dir():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)


def _rewrite_paths(worktree: Path, path: str, repo_top: Path) -> int:
    """In the virtual environment copied to `path`, change paths of the user's tree to the worktree's; returns how many
    files changed. Only in files where tools write absolute paths: scripts in `bin`, and those of editable installs.
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
                mode = stat.S_IMODE(status(worktree, inner).st_mode) & 0o777
                write_bytes(worktree, inner, moved, mode=mode)
                turned += 1
    return turned
