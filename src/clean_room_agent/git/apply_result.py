"""Applies a commit's changes to the user's files."""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from clean_room_agent import safe_open
from clean_room_agent.errors import GitError, RepositoryError
from clean_room_agent.git.command import names, one_line, require_hex
from clean_room_agent.git.commits import EXECUTABLE, GITLINK, LINK, scratch_index
from clean_room_agent.git.history import ChangedPath, TreeEntry, changed_paths, list_tree, read_object
from clean_room_agent.git.repository import Repository, as_configured_now
from clean_room_agent.tree_update import NewFile, folders_of, remove_leftovers, state_of, update_tree


def apply_to_tree(repo: Repository, base: str, commit: str, *, what: str) -> tuple[str, ...]:
    """Apply the changes from `base` to `commit` to the user's files, and return the paths that this changed, sorted: those
    that were not as in `commit` already, apart from line ends. The index is untouched.

    Every path is first compared with `base`. Contents are what git would check out, without filter drivers; a file that has
    other line ends than that keeps its own. `what` is for messages, such as `applying run 3f0c8a52`.

    Raises:
        RepositoryError: files differ from those of `base`, all of them named; or they cannot be written (`update_tree`).
    """
    words = _ApplyWords(what=what, since="the run started", done="applied", otherwise="merge the branch")
    return _apply_changes(repo, base, commit, words)


def take_back(repo: Repository, base: str, commit: str, *, what: str) -> tuple[str, ...]:
    """Undo the changes from `base` to `commit` in the user's files: the reverse of `apply_to_tree`.

    Raises:
        RepositoryError: files differ from those of `commit`, all of them named; or they cannot be written.
    """
    by_hand = f"undo the rest by hand: git diff {base[:12]} shows it"
    words = _ApplyWords(what=what, since="it was applied", done="taken back", otherwise=by_hand)
    return _apply_changes(repo, commit, base, words)


class _ApplyWords(Struct, frozen=True, kw_only=True):
    what: str
    since: str
    done: str
    otherwise: str

    def refusal(self, problem: str, paths: Iterable[str], remedy: str) -> RepositoryError:
        return RepositoryError(
            f"{problem}: {', '.join(sorted(paths))}; nothing was {self.done}",
            hint=f"{remedy}, or {self.otherwise}",
        )


def _apply_changes(repo: Repository, old: str, new: str, words: _ApplyWords) -> tuple[str, ...]:
    repo = as_configured_now(repo)
    before, after = list_tree(repo, old), list_tree(repo, new)
    changed = changed_paths(repo, old, new)
    links = {path for tree in (before, after) for path, entry in tree.items() if entry.mode == GITLINK}
    submodules = [entry.path for entry in changed if entry.path in links]
    if submodules:
        raise words.refusal("submodules change", submodules, "update them yourself: git submodule update")
    paths = {entry.path for entry in changed}
    turned = paths & {folder for path in paths for folder in folders_of(path)}
    if turned:
        raise words.refusal("files become folders, or folders files", turned, "move them yourself")
    remove_leftovers(repo.top, paths)
    seen = {entry.path: _path_state(repo.top, entry.path) for entry in changed}
    wanted = _wanted_files(repo, before, after, changed)
    todo = [entry for entry in changed if not _is_applied(repo.top, entry.path, seen, wanted)]
    existing = tuple(entry.path for entry in todo if entry.status != "A")
    in_the_way = (entry.path for entry in todo if entry.status == "A" and _is_occupied(repo.top, entry.path))
    moved_on = {*_differing_paths(repo, old, existing), *in_the_way}
    if moved_on:
        raise words.refusal(f"changed here since {words.since}", moved_on, "put these files back")
    shared = [path for path in existing if _has_other_names(repo, path)]
    if shared:
        problem = "hard links share their content with other files"
        raise words.refusal(problem, shared, "break the links (cp -p a b && mv b a)")
    if todo:
        files = {entry.path: wanted[entry.path] for entry in todo}
        update_tree(repo.top, files, seen, what=words.what)
    return tuple(entry.path for entry in todo)


def _path_state(top: Path, path: str) -> str:
    """The state of the path; what cannot be read is like nothing that is expected."""
    try:
        return state_of(top, path)
    except OSError as error:
        return f"unreadable: {error.strerror}"


def _wanted_files(
    repo: Repository,
    before: Mapping[str, TreeEntry],
    after: Mapping[str, TreeEntry],
    changed: Iterable[ChangedPath],
) -> dict[str, NewFile | None]:
    """What each path is to become, as git would check it out; None if it is to be removed."""
    entries = {entry.path: after.get(entry.path) for entry in changed}
    contents = _checked_out(repo, {path: entry for path, entry in entries.items() if entry is not None})
    found: dict[str, NewFile | None] = {}
    for path, entry in entries.items():
        earlier = before.get(path)
        if entry is None:
            found[path] = None
        elif entry.mode == LINK and _is_set(repo, "core.symlinks"):
            found[path] = NewFile(data=read_object(repo, entry.object_name), link=True)
        elif earlier is None or earlier.mode == LINK:
            found[path] = NewFile(data=contents[path], executable=entry.mode == EXECUTABLE)
        else:
            keeps_mode = entry.mode == earlier.mode or not _is_set(repo, "core.fileMode")
            executable = None if keeps_mode else entry.mode == EXECUTABLE
            data = _with_own_line_ends(repo, path, earlier, contents[path])
            found[path] = NewFile(data=data, executable=executable)
    return found


def _with_own_line_ends(repo: Repository, path: str, earlier: TreeEntry, data: bytes) -> bytes:
    """`data` with the line ends of the user's file, if git would have checked that out with those of `data`."""
    own, usual = _line_ends(safe_open.read_or_none(repo.top, path)), _line_ends(data)
    if not own or not usual or own == usual:
        return data
    then = _line_ends(_checked_out(repo, {path: earlier})[path])
    return _normalize_line_ends(data).replace(b"\n", own.encode()) if then == usual else data


def _checked_out(repo: Repository, entries: Mapping[str, TreeEntry]) -> dict[str, bytes]:
    """The bytes that git would write, with the configured line ends and encoding; no filter driver runs."""
    # In one process, but for names that its input cannot hold. The size that it tells is that of the stored object.
    mark = os.urandom(16).hex()
    batch = [path for path in entries if "\n" not in path and path[0] not in " \t"]
    lines = b"".join(os.fsencode(f"{require_hex(entries[path].object_name)} {path}\n") for path in batch)
    answer = repo.git("cat-file", f"--batch={mark}", "--filters", input=lines) if batch else b""
    parts = [part.removesuffix(b"\n") for part in answer.split(f"{mark}\n".encode())[1:]]
    if len(parts) != len(batch):
        raise GitError(f"git cat-file: an object of the result is missing: {answer[-200:]!r}")
    found = dict(zip(batch, parts, strict=True))
    for path in entries.keys() - found.keys():
        entry = entries[path]
        found[path] = repo.git("cat-file", "--filters", f"--path={path}", require_hex(entry.object_name))
    return found


def _is_set(repo: Repository, key: str) -> bool:
    """A setting that is on by default: whether the file system can do this."""
    return one_line(repo.git("config", "--type=bool", "--default=true", "--get", "--", key)) == "true"


def _line_ends(data: bytes | None) -> str:
    """The line end that all lines have; "" if they differ, or if there is none."""
    if data is None:
        return ""
    every, windows = data.count(b"\n"), data.count(b"\r\n")
    return "" if windows not in (0, every) or not every else "\r\n" if windows else "\n"


def _is_applied(top: Path, path: str, seen: Mapping[str, str], wanted: Mapping[str, NewFile | None]) -> bool:
    """Whether the path is already what it is to become, apart from line ends."""
    new, kind = wanted[path], seen[path].partition(":")[0]
    if new is None:
        return kind in ("", "folder")
    if new.link:
        return kind == "link" and os.fsencode((top / path).readlink()) == new.data
    present = safe_open.read_or_none(top, path)
    if kind != "file" or present is None or _normalize_line_ends(present) != _normalize_line_ends(new.data):
        return False
    return new.executable in (None, bool(safe_open.status(top, path).st_mode & stat.S_IXUSR))


def _normalize_line_ends(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n")


def _is_occupied(top: Path, path: str) -> bool:
    """Whether something is in the place of a file to be created, or of one of its folders."""
    above = (top / folder for folder in folders_of(path))
    if any(os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()) for folder in above):
        return True
    return _path_state(top, path) != ""


def _has_other_names(repo: Repository, path: str) -> bool:
    try:
        found = safe_open.status(repo.top, path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_nlink > 1


def _differing_paths(repo: Repository, base: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Those of `paths` that differ between the working tree and `base`, apart from line endings."""
    if not paths:
        return ()
    entries = repo.git("ls-tree", "-r", "-z", "--full-tree", "--", require_hex(base), *paths)
    with scratch_index(repo, None) as pins:
        repo.git("update-index", "-z", "--index-info", pins=pins, input=entries)
        repo.git("update-index", "-q", "--refresh", pins=pins, ok=(0, 1))
        return names(repo.git("diff-files", "-z", "--name-only", "--no-renames", pins=pins))
