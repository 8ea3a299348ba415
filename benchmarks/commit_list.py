"""The list of real commits: what stands in `real_commits.toml`, read, checked and written."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import tomli_w
from pydantic import BaseModel, ConfigDict, Field

Runner = Literal["pytest", "mocha", "vitest"]
Selection = Literal["all", "files", "folders"]
Sha = str


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RepositoryEntry(_Table):
    """How a repository is laid out and tested. The patterns are regular expressions, searched in a path.

    `environments` are tried in this order: a project's older commits may need older packages.
    """

    sources: str
    tests: str
    test_modules: str
    runner: Runner
    command: tuple[str, ...]
    select: Selection
    module: str = ""
    environments: Annotated[tuple[str, ...], Field(min_length=1)]


class EnvironmentEntry(_Table):
    """What the tests need besides the checkout.

    `requirements` are pinned and complete: pip installs them without dependencies; npm as they stood on `before`.
    `site_files` (name -> text) go into the virtual environment's site-packages: what the project's build would
    have generated, for packages that run from the checkout unbuilt.
    """

    kind: Literal["python", "node"]
    version: str
    requirements: tuple[str, ...]
    before: str = ""
    site_files: dict[str, str] = {}


class CommitEntry(_Table):
    """One real fix. `command` runs in the checkout; `must_pass` was found by running, never by hand."""

    id: str
    repository: str
    commit: Sha
    base: Sha
    environment: str
    sources: tuple[str, ...]
    changed_lines: int
    test_files: tuple[str, ...]
    command: tuple[str, ...]
    must_pass: tuple[str, ...] = ()


class CommitList(_Table):
    """The whole file. Commits stand in the order in which they are worked through."""

    repositories: dict[str, RepositoryEntry]
    environments: dict[str, EnvironmentEntry]
    commits: tuple[CommitEntry, ...] = ()


def read_list(path: Path) -> CommitList:
    """The list, every name in it resolved.

    Raises:
        ValueError: the file is not of this form (pydantic's error names the key).
        KeyError: a commit names a repository or an environment that is not in the file.
    """
    listed = CommitList.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    for commit in listed.commits:
        _ = listed.repositories[commit.repository], listed.environments[commit.environment]
    return listed


def write_commits(path: Path, commits: Sequence[CommitEntry]) -> None:
    """The file holds exactly these commits; all that stood before the first of them is unchanged."""
    head = path.read_text(encoding="utf-8").split("[[commits]]\n", 1)[0].rstrip("\n")
    rows = [commit.model_dump(mode="json") for commit in commits]
    body = "\n".join("[[commits]]\n" + tomli_w.dumps(row) for row in rows)
    path.write_text(f"{head}\n\n{body}", encoding="utf-8")
