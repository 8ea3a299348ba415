"""Makes commits without touching the user's tree, index or HEAD: from edited texts in memory, never from a folder in
which tests ran; and from the working tree as the user sees it, as the snapshot that a run starts from.
"""

import functools
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from clean_room_agent.errors import GitError, RepositoryError
from clean_room_agent.folders import temporary_folder
from clean_room_agent.git.command import fields, git, joined, named_programs, names, one_line, require_hex
from clean_room_agent.git.generated import Generated, split_generated
from clean_room_agent.git.history import changed_paths
from clean_room_agent.git.refs import sync_commit, write_ref
from clean_room_agent.git.repository import (
    ATTRIBUTE,
    NO_NAME,
    Repository,
    author_of,
    encodings,
    why_not_shown,
)
from clean_room_agent.safe_open import is_file

FILE = "100644"
EXECUTABLE = "100755"
LINK = "120000"
SNAPSHOT_MESSAGE = b"Uncommitted work, as cra found it\n"
GITLINK = "160000"
KEPT_ENCODINGS = 32
"""Answers to keep: a step's edits name the same files several times."""
ONE_COMMAND = 500
"""Paths in one command line."""


@contextmanager
def scratch_index(repo: Repository, start: str | None) -> Iterator[dict[str, str]]:
    """The pins that make git use a temporary index, which contains the tree of `start`, or nothing."""
    with temporary_folder("index") as folder:
        pins = {"GIT_INDEX_FILE": str(folder / "index")}
        repo.git("read-tree", *([require_hex(start)] if start is not None else ["--empty"]), pins=pins)
        yield pins


@contextmanager
def copied_index(repo: Repository) -> Iterator[dict[str, str]]:
    """The pins that make git use a copy of the user's index, or an index of HEAD if there is none."""
    try:
        source = (repo.git_dir / "index").open("rb")
    except FileNotFoundError:
        with scratch_index(repo, repo.head) as pins:
            yield pins
        return
    with source, temporary_folder("index") as folder:
        index = folder / "index"
        index.write_bytes(source.read())
        # With a younger time than the original's, git would trust entries that are racily clean.
        times = os.fstat(source.fileno())
        os.utime(index, ns=(times.st_atime_ns, times.st_mtime_ns))
        yield {"GIT_INDEX_FILE": str(index)}


def encodings_at(repo: Repository, commit: str, paths: Iterable[str]) -> Mapping[str, str]:
    """The encodings to which git converts those of `paths`, by path, with the attributes in `commit`, in the working tree,
    and the user's own. The paths need not exist.
    """
    return _attributes_at(repo, require_hex(commit), tuple(sorted(paths)))[0]


def conversions_at(repo: Repository, commit: str, paths: Iterable[str]) -> Mapping[str, str]:
    """Why those of `paths` are not to be edited that git converts, to another encoding or by a filter driver: an edit
    would commit, and put into the working tree, what was not converted.
    """
    encoded, filtered = _attributes_at(repo, require_hex(commit), tuple(sorted(paths)))
    return filtered | {path: why_not_shown(name) for path, name in encoded.items()}


@functools.lru_cache(maxsize=KEPT_ENCODINGS)
def _attributes_at(
    repo: Repository, commit: str, paths: tuple[str, ...]
) -> tuple[dict[str, str], dict[str, str]]:
    """Encodings, and why filtered files are left alone, by path."""
    if not paths:
        return {}, {}
    encoded, filtered = _encoded_paths(repo, {}, paths), _filtered_paths(repo, {}, paths)
    with scratch_index(repo, commit) as pins:
        encoded |= _encoded_paths(repo, pins, paths, "--cached")
        filtered |= _filtered_paths(repo, pins, paths, "--cached")
    return encoded, filtered


class FileChange(Struct, frozen=True, kw_only=True):
    """A file after the change; `mode` is FILE, EXECUTABLE or LINK (`data` is then its target)."""

    data: bytes
    mode: str


def commit_files(
    repo: Repository,
    parent: str,
    files: Mapping[str, FileChange | None],
    message: str,
    *,
    date: str | None = None,
) -> str:
    """Create a commit on `parent` in which `files` are as given (None deletes), and return its id. No ref is moved.

    Line endings are stored as `git add` would store them, by the attributes of `parent` and the configuration, so that
    a checkout gives the same bytes back; filter drivers do not run, and encodings are never converted. The author is `author_of(repo)`;
    `date` is in one of git's formats, by default now.

    Raises:
        GitError: a path is not relative, leaves the tree, or is not one that git accepts.
    """
    deleted = tuple(sorted(path for path, change in files.items() if change is None))
    written = {path: change for path, change in sorted(files.items()) if change is not None}
    for path in files:
        _refuse_bad_path(path)
    encoded = encodings_at(repo, parent, written)
    with temporary_folder("commit") as folder, scratch_index(repo, parent) as index:
        for path, change in written.items():
            if path not in encoded:
                _write_change(folder / path, change)
        pins = index | {"GIT_WORK_TREE": str(folder)}
        flags = ("-c", "core.fileMode=true", "-c", "core.symlinks=true", "update-index")
        if deleted:
            repo.git(*flags, "--remove", "-z", "--stdin", pins=pins, input=joined(deleted))
        if plain := tuple(path for path in written if path not in encoded):
            repo.git(*flags, "--add", "-z", "--stdin", pins=pins, input=joined(plain))
        for path in encoded:
            name = one_line(
                repo.git("hash-object", "-w", "--no-filters", "--stdin", input=written[path].data)
            )
            entry = f"{written[path].mode} {name}\t".encode() + joined((path,))
            repo.git(*flags, "-z", "--index-info", pins=pins, input=entry)
        refused = sorted(set(written) - set(names(repo.git("ls-files", "-z", pins=pins))))
        if refused:
            raise GitError(f"git does not accept these names: {', '.join(refused)}")
        tree = one_line(repo.git("write-tree", pins=pins))
    return _commit_tree(repo, tree, parent, message.encode("utf-8", "replace"), date)


def _commit_tree(repo: Repository, tree: str, parent: str, message: bytes, date: str | None) -> str:
    name, mail = author_of(repo)
    who = {"NAME": name, "EMAIL": mail} | ({} if date is None else {"DATE": date})
    pins = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
    arguments = (require_hex(tree), "-p", require_hex(parent), "-F", "-")
    return one_line(repo.git("commit-tree", *arguments, pins=pins, input=message))


def _refuse_bad_path(path: str) -> None:
    parts = path.split("/")
    if "\0" in path or any(part in {"", ".", ".."} or part.lower() == ".git" for part in parts):
        raise GitError(f"not a path inside the repository: {path!r}")


def _write_change(file: Path, change: FileChange) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if change.mode == LINK:
        file.symlink_to(change.data.decode("utf-8", "surrogateescape"))
        return
    file.write_bytes(change.data)
    file.chmod(0o755 if change.mode == EXECUTABLE else 0o644)


class Snapshot(Struct, frozen=True, kw_only=True):
    """The commit that a run starts from; all paths sorted.

    `commit` is HEAD itself when nothing is uncommitted, else a commit on top of it that no branch names. `excluded`
    pairs a path with the reason why the snapshot has it as committed, or not at all. `converted` are tracked files of a
    filter driver: a worktree has their committed contents, such as LFS pointers. `absent` are those that a sparse checkout
    does not show. `generated` are folders of which nothing is included. `encoded` are those that git converts to another
    encoding.
    """

    commit: str
    dirty_tracked: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    excluded: tuple[tuple[str, str], ...] = ()
    converted: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    generated: tuple[Generated, ...] = ()
    encoded: tuple[str, ...] = ()

    def unlike_the_tree(self) -> tuple[str, ...]:
        """The paths whose text in a checkout may be another one than in the user's tree; line ends are no difference."""
        paths = (*(path for path, _ in self.excluded), *self.converted)
        return tuple(path for path in paths if path not in self.encoded)


def snapshot(
    repo: Repository, task_id: str, *, secrets: Callable[[str], bool], max_untracked_bytes: int
) -> Snapshot:
    """Commit HEAD, tracked changes (also those hidden by assume-unchanged), and untracked files that are not ignored.

    The ref `refs/cra/<task_id>/base`, which must not exist yet, keeps it. Left out, and reported: untracked files over
    `max_untracked_bytes` or for which `secrets` holds, those in generated folders, what a filter driver would have to
    convert, what git cannot convert from the encoding that its attributes name, changed submodules, other repositories. The same tree and HEAD give the same commit.

    Raises:
        RepositoryError: the attributes of a tracked file stop git itself.
        GitError: a tracked file cannot be read, or the task has a snapshot already.
    """
    with copied_index(repo) as pins:
        files, submodules, absent = _clear_hiding_flags(repo, pins)
        encoded = _encoded_paths(repo, pins, files)
        _refuse_unnamed(encoded)
        converted = _filtered_paths(repo, pins, files)
        excluded = _take_tracked(repo, pins, submodules)
        listed = names(repo.git("ls-files", "--others", "--exclude-standard", "-z", pins=pins))
        kept, generated = split_generated(str(repo.top), (*files, *submodules), listed)
        untracked, left_out = _take_untracked(repo, pins, kept, secrets, max_untracked_bytes)
        encoded |= _encoded_paths(repo, pins, untracked)
        tree = one_line(repo.git("write-tree", pins=pins))
    commit = _commit(repo, tree)
    if commit != repo.head:
        sync_commit(repo, commit)
    write_ref(repo, f"refs/cra/{task_id}/base", commit, repo.zero)
    new = set(untracked)
    return Snapshot(
        commit=commit,
        dirty_tracked=tuple(
            one.path for one in changed_paths(repo, repo.head, commit) if one.path not in new
        ),
        untracked=tuple(sorted(new)),
        excluded=tuple(sorted({*excluded, *left_out.items()})),
        converted=tuple(sorted(converted)),
        absent=absent,
        generated=generated,
        encoded=tuple(sorted(encoded)),
    )


def _commit(repo: Repository, tree: str) -> str:
    if tree == one_line(repo.git("rev-parse", "--verify", "--end-of-options", f"{repo.head}^{{tree}}")):
        return repo.head
    date = one_line(repo.git("show", "-s", "--format=%ct +0000", "--end-of-options", repo.head))
    return _commit_tree(repo, tree, repo.head, SNAPSHOT_MESSAGE, date)


def _take_tracked(
    repo: Repository, pins: Mapping[str, str], submodules: tuple[str, ...]
) -> list[tuple[str, str]]:
    """Add the changes of tracked files to the index; returns those left out, with the reason."""
    excluded = [(path, why) for path in submodules if (why := _changes_inside(repo.top / path))]
    repo.git("update-index", "-q", "--refresh", pins=pins, ok=(0, 1))
    entries = names(
        repo.git("diff-files", "-z", "--raw", "--no-renames", "--ignore-submodules=dirty", pins=pins)
    )
    paths = []
    for head, path in zip(entries[0::2], entries[1::2], strict=True):
        old_mode, new_mode = head.lstrip(":").split(" ")[:2]
        if GITLINK in {old_mode, new_mode}:
            excluded.append((path, "a submodule at another commit: left as recorded"))
        elif _is_special(repo.top / path):
            excluded.append((path, "neither a file nor a link"))
        else:
            paths.append(path)
    gone = {path for path in paths if not _exists_unlinked(repo.top, path)}
    filtered = _not_stored(repo, pins, tuple(path for path in paths if path not in gone))
    written = tuple(path for path in paths if path not in gone and path not in filtered)
    if gone:
        removed = joined(tuple(sorted(gone)))
        repo.git("update-index", "--force-remove", "-z", "--stdin", pins=pins, input=removed)
    if written:
        repo.git("update-index", "--add", "--remove", "-z", "--stdin", pins=pins, input=joined(written))
    return [*excluded, *filtered.items()]


def _take_untracked(
    repo: Repository,
    pins: Mapping[str, str],
    paths: tuple[str, ...],
    secrets: Callable[[str], bool],
    max_bytes: int,
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Add the untracked paths to the index; returns those that were added, and why the others are left out."""
    reasons = {path: _reason_against(repo.top / path, path, secrets, max_bytes) for path in paths}
    excluded = {path: reason for path, reason in reasons.items() if reason}
    excluded |= _not_stored(repo, pins, tuple(path for path in paths if path not in excluded))
    taken = tuple(path for path in paths if path not in excluded)
    if taken:
        repo.git("update-index", "--add", "-z", "--stdin", pins=pins, input=joined(taken))
    return taken, excluded


def _clear_hiding_flags(
    repo: Repository, pins: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Clear the flags that hide existing files from comparison; returns the tracked files, the submodules, and the files that are
    hidden by a flag and missing on disk.
    """
    assumed: list[str] = []
    skipped: list[str] = []
    absent: list[str] = []
    files: list[str] = []
    submodules: list[str] = []
    for entry in names(repo.git("ls-files", "-z", "-v", "--stage", pins=pins)):
        head, _, path = entry.partition("\t")
        tag, mode = head.split(" ")[:2]
        if mode == GITLINK:
            submodules.append(path)
            continue
        files.append(path)
        if tag.islower():
            assumed.append(path)
        if tag in "Ss":
            (skipped if os.path.lexists(repo.top / path) else absent).append(path)
    for flag, paths in (("assume-unchanged", assumed), ("skip-worktree", skipped)):
        if paths:
            repo.git("update-index", f"--no-{flag}", "-z", "--stdin", pins=pins, input=joined(tuple(paths)))
    return tuple(files), tuple(submodules), tuple(sorted(absent))


def _changes_inside(submodule: Path) -> str:
    """Why a submodule is not as recorded; "" if it is."""
    if not (submodule / ".git").exists():
        return ""
    asked = ("status", "--porcelain", "-z", "--ignore-submodules=dirty")
    try:
        status = git(*asked, cwd=submodule, named=named_programs(submodule))
    except GitError:
        return "a submodule that git cannot read: left as recorded"
    return "a submodule with uncommitted changes: left as recorded" if status else ""


def _reason_against(file: Path, path: str, secrets: Callable[[str], bool], max_bytes: int) -> str:
    if path.endswith("/"):
        return "another git repository"
    if secrets(path):
        return "its name looks like a secret"
    try:
        info = file.lstat()
    except FileNotFoundError:
        return "disappeared while the snapshot was taken"
    if _is_special(file):
        return "neither a file nor a link"
    if info.st_size > max_bytes:
        return f"{info.st_size} bytes are more than the limit of {max_bytes}"
    return "" if stat.S_ISLNK(info.st_mode) or os.access(file, os.R_OK) else "cannot be read"


def _not_stored(repo: Repository, pins: Mapping[str, str], paths: tuple[str, ...]) -> dict[str, str]:
    """Those of `paths` that are left out because of their attributes, with the reason."""
    return _filtered_paths(repo, pins, paths) | _undecodable_paths(repo, pins, paths)


def _encoded_paths(
    repo: Repository, pins: Mapping[str, str], paths: tuple[str, ...], *flags: str
) -> dict[str, str]:
    return encodings(lambda args, given: repo.git("check-attr", *flags, *args, pins=pins, input=given), paths)


def _refuse_unnamed(encoded: Mapping[str, str]) -> None:
    for path, name in encoded.items():
        if name in NO_NAME:
            raise RepositoryError(
                f"{path}: its attribute {ATTRIBUTE} is {name}, and names no encoding: git stops at such a file",
                hint="name one in .gitattributes, or take the attribute away: !" + ATTRIBUTE,
            )


def _undecodable_paths(repo: Repository, pins: Mapping[str, str], paths: tuple[str, ...]) -> dict[str, str]:
    """Those of `paths` whose bytes git itself refuses to convert from the encoding that their attributes name."""
    encoded = _encoded_paths(repo, pins, paths)

    def stored(*some: str) -> bool:
        try:
            repo.git("hash-object", "-w", "--", *some, pins=pins)
        except GitError:
            return False
        return True

    regular = sorted(path for path in encoded if is_file(repo.top, path))
    refused: list[str] = []
    for first in range(0, len(regular), ONE_COMMAND):
        some = regular[first : first + ONE_COMMAND]
        if not stored(*some):
            refused += [path for path in some if not stored(path)]
    return {path: f"git cannot convert it from {encoded[path]} ({ATTRIBUTE})" for path in refused}


def _filtered_paths(
    repo: Repository, pins: Mapping[str, str], paths: tuple[str, ...], *flags: str
) -> dict[str, str]:
    """Those of `paths` that belong to a filter driver, with the reason. Stored unfiltered, they could leak secrets or
    bloat the repository.
    """
    if not repo.named.filters or not paths:
        return {}
    told = fields(repo.git("check-attr", *flags, "-z", "--stdin", "filter", pins=pins, input=joined(paths)))
    pairs = zip(told[0::3], told[2::3], strict=True)
    return {
        path: f"filter driver {name!r} does not run here"
        for path, name in pairs
        if name in repo.named.filters
    }


def _exists_unlinked(top: Path, path: str) -> bool:
    """Whether the path exists without following a link: git's index has no paths beyond links."""
    file = top / path
    above = (each for each in file.parents if each.is_relative_to(top) and each != top)
    return os.path.lexists(file) and not any(each.is_symlink() for each in above)


def _is_special(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))
