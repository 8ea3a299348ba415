"""Makes commits from bytes in memory, never from a folder in which tests ran. They use a temporary index, so that the
user's own is only read.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from clean_room_agent.errors import GitError
from clean_room_agent.folders import temporary_folder
from clean_room_agent.git.command import joined, names, one_line, require_hex
from clean_room_agent.git.repository import Repository, author_of

FILE = "100644"
EXECUTABLE = "100755"
LINK = "120000"


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


def identity(author: tuple[str, str], date: str | None) -> Mapping[str, str]:
    """The pins that make `author` the author and committer of what is committed, at `date` (git's forms) or now."""
    name, mail = author
    who = {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", name), ("EMAIL", mail))
    }
    when = {} if date is None else {f"GIT_{role}_DATE": date for role in ("AUTHOR", "COMMITTER")}
    return who | when


class FileChange(Struct, frozen=True, kw_only=True):
    """A file after the change; `mode` is FILE, EXECUTABLE or LINK (`data` is then its target)."""

    data: bytes
    mode: str


def commit_files(
    repo: Repository,
    parent: str,
    files: Mapping[str, FileChange | None],
    message: str,
    author: tuple[str, str] | None,
    *,
    date: str | None = None,
) -> str:
    """Create a commit on `parent` in which `files` are as given (None deletes), and return its id. No ref is moved.

    Line endings are stored as `git add` would store them, by the attributes of `parent` and the configuration, so that
    a checkout gives the same bytes back; filter drivers do not run. `author` is (name, address), by default
    `author_of(repo)`; `date` is in one of git's formats, by default now.

    Raises:
        GitError: a path is not relative, leaves the tree, or is not one that git accepts.
    """
    deleted = tuple(sorted(path for path, change in files.items() if change is None))
    written = {path: change for path, change in sorted(files.items()) if change is not None}
    for path in files:
        _refuse_bad_path(path)
    with temporary_folder("commit") as folder, scratch_index(repo, parent) as index:
        for path, change in written.items():
            _write(folder / path, change)
        pins = index | {"GIT_WORK_TREE": str(folder)}
        flags = ("-c", "core.fileMode=true", "-c", "core.symlinks=true", "update-index")
        if deleted:
            repo.git(*flags, "--remove", "-z", "--stdin", pins=pins, input=joined(deleted))
        if written:
            repo.git(*flags, "--add", "-z", "--stdin", pins=pins, input=joined(tuple(written)))
        refused = sorted(set(written) - set(names(repo.git("ls-files", "-z", pins=pins))))
        if refused:
            raise GitError(f"git does not accept these names: {', '.join(refused)}")
        tree = one_line(repo.git("write-tree", pins=pins))
    pins = dict(identity(author or author_of(repo), date))
    body = message.encode("utf-8", "replace")
    return one_line(
        repo.git(
            "commit-tree", require_hex(tree), "-p", require_hex(parent), "-F", "-", pins=pins, input=body
        )
    )


def _refuse_bad_path(path: str) -> None:
    parts = path.split("/")
    if "\0" in path or any(part in {"", ".", ".."} or part.lower() == ".git" for part in parts):
        raise GitError(f"not a path inside the repository: {path!r}")


def _write(file: Path, change: FileChange) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if change.mode == LINK:
        file.symlink_to(change.data.decode("utf-8", "surrogateescape"))
        return
    file.write_bytes(change.data)
    file.chmod(0o755 if change.mode == EXECUTABLE else 0o644)
