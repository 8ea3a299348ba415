"""A temporary git index, so that the user's own is only read."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from clean_room_agent.git.command import require_hex
from clean_room_agent.git.repository import Repository
from clean_room_agent.temp_folders import temporary_folder


@contextmanager
def scratch_index(repo: Repository, start: str | None) -> Iterator[dict[str, str]]:
    """The pins that make git use a temporary index, which holds the tree of `start`, or nothing."""
    with temporary_folder("index") as folder:
        pins = {"GIT_INDEX_FILE": str(folder / "index")}
        repo.git("read-tree", *([require_hex(start)] if start is not None else ["--empty"]), pins=pins)
        yield pins


@contextmanager
def copied_index(repo: Repository) -> Iterator[dict[str, str]]:
    """The pins that make git use a copy of the user's index; where there is none, one of HEAD."""
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
