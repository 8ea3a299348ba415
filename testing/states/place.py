"""A repository in some state, all of it below one folder, with the project of `solving` in it."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct, field

from testing.repositories import commit, git, make_repository
from testing.runs.solving import RECEIPT, TILL

LATER = RECEIPT + "\nWIDTH = 40\n"
LATIN = os.fsdecode(b"caf\xe9")


class Place(Struct, frozen=True, kw_only=True):
    """A repository in some state."""

    top: Path
    """Where commands are run."""
    refused: str = ""
    """What the refusal says; "" where runs are possible."""
    environment: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    """A program and its arguments that start `cra`, as one that makes a folder read-only."""


Maker = Callable[[Path], Place | None]


def till(folder: Path, name: str = "till") -> Path:
    """The project in a new repository, with a file that the task does not concern."""
    return make_repository(folder / name, {**TILL, "notes.txt": "one\ntwo\nthree\n"})


def attempt(top: Path, *command: str) -> None:
    """A git command that is expected to stop half-way."""
    git(top, "-c", f"alias.try=!git {' '.join(command)} || true", "try")


def commit_as(top: Path, files: Mapping[str, str], message: str) -> None:
    """A commit in a clone, which has no author configured."""
    git(top, "config", "user.name", "Ada Example")
    git(top, "config", "user.email", "ada@example.org")
    commit(top, files, message)
