"""The list of real commits: what stands in `real_commits.toml`, read, checked and written."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import tomli_w
from pydantic import BaseModel, ConfigDict, Field

Runner = Literal["pytest", "mocha", "vitest", "jest", "node", "ava"]
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


class SearchEntry(_Table):
    """How a repository was searched: commits looked at, newest first, and how many each reason left out."""

    looked_at: int
    taken: int
    left_out: dict[str, int]


class CommitList(_Table):
    """The whole file. Commits stand in the order in which they are worked through.

    `environments_of` and `repositories_of` name lists beside this one whose environments and repositories hold here too.
    """

    environments_of: str = ""
    repositories_of: str = ""
    repositories: dict[str, RepositoryEntry] = {}
    environments: dict[str, EnvironmentEntry] = {}
    searches: dict[str, SearchEntry] = {}
    commits: tuple[CommitEntry, ...] = ()


def read_list(path: Path) -> CommitList:
    """The list, every name in it resolved.

    Raises:
        ValueError: the file is not of this form (pydantic's error names the key).
        KeyError: a commit names a repository or an environment that is not in the file.
    """
    listed = CommitList.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    if listed.environments_of:
        others = read_list(path.with_name(listed.environments_of)).environments
        listed = listed.model_copy(update={"environments": {**others, **listed.environments}})
    if listed.repositories_of:
        known = read_list(path.with_name(listed.repositories_of)).repositories
        listed = listed.model_copy(update={"repositories": {**known, **listed.repositories}})
    for commit in listed.commits:
        _ = listed.repositories[commit.repository], listed.environments[commit.environment]
    return listed


def write_commits(
    path: Path, commits: Sequence[CommitEntry], searches: Mapping[str, SearchEntry] | None = None
) -> None:
    """The file holds exactly these searches and commits; all that stood before the first of them is unchanged."""
    head = re.split(r"^\[searches\.|^\[\[commits\]\]$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[
        0
    ]
    tables = [
        tomli_w.dumps({"searches": {name: search.model_dump()}}) for name, search in (searches or {}).items()
    ]
    tables.extend("[[commits]]\n" + tomli_w.dumps(commit.model_dump(mode="json")) for commit in commits)
    path.write_text(head.rstrip("\n") + "\n\n" + "\n".join(tables), encoding="utf-8")
