"""Validates what the user gives to judge a task by, and where it is: `--check`, `--test` and `--file`."""

import os
from collections.abc import Iterable
from pathlib import Path

from clean_room_agent.artifacts.goals import COMMAND_MARK, GivenEvidence
from clean_room_agent.errors import UsageError
from clean_room_agent.execute.edits.rules import Places, is_control_path
from clean_room_agent.execute.plan_validation import mistyped
from clean_room_agent.file_contents import require_text
from clean_room_agent.git.repository import list_files, list_others
from clean_room_agent.workspace import Workspace


def checked_evidence(
    workspace: Workspace, given: GivenEvidence, *, folder: Path | None = None
) -> GivenEvidence:
    """`given`, each thing once, with its files as paths of the repository. A relative path is one of the repository, or of
    `folder` (by default the current one).

    Raises:
        UsageError: a check or a test is empty, or a file is not one that could be changed.
    """
    for flag, values in (("--check", given.checks), ("--test", given.tests), ("--file", given.files)):
        for value in values:
            if not value.removeprefix(COMMAND_MARK if flag == "--check" else "").strip():
                raise UsageError(f"{flag} {value!r} says nothing", hint=HINTS[flag])
            if flag != "--file":
                require_text(value, flag)
    files: tuple[str, ...] = ()
    if given.files:
        places = places_of(workspace)
        files = tuple(_repository_path(workspace, folder or Path.cwd(), places, file) for file in given.files)
    return GivenEvidence(
        tests=_without_duplicates(test.strip() for test in given.tests),
        checks=_without_duplicates(check.strip() for check in given.checks),
        files=_without_duplicates(files),
    )


def places_of(workspace: Workspace) -> Places:
    """What stands in the working tree."""
    return Places(list_files(workspace.repo), list_others(workspace.repo))


def together(first: GivenEvidence, second: GivenEvidence) -> GivenEvidence:
    """Both, each thing once."""
    return GivenEvidence(
        tests=_without_duplicates((*first.tests, *second.tests)),
        checks=_without_duplicates((*first.checks, *second.checks)),
        files=_without_duplicates((*first.files, *second.files)),
    )


HINTS = {
    "--check": "a statement that fails now and must hold at the end, or `sh:` and a command",
    "--test": "the name of a failing test as its runner writes it: tests/test_a.py::test_b",
    "--file": "the path of a file that may be changed",
}


def _repository_path(workspace: Workspace, folder: Path, places: Places, text: str) -> str:
    """The file as a path of the repository: read from its top, or else from `folder`."""
    top = workspace.repo
    above = folder / text
    meant = [os.path.normpath(text), os.path.relpath(above, top)]
    if Path(text).is_absolute():
        meant = [os.path.relpath(text, top), os.path.relpath(Path(text).resolve(), top)]
    found = next((path for path in meant if path in places and not is_control_path(path)), None)
    if found is not None:
        return found
    path = meant[0]
    what = "" if path.startswith("..") else places.obstacle(path)
    if path in places:
        what = "a file that steers git or cra"
    close = mistyped(path, places)
    raise UsageError(
        f"--file {text}: "
        + (what if path in what else f"{path} is {what}" if what else "there is no such file"),
        hint=f"did you mean {close}?" if close else "name a file of the repository that may be changed",
    )


def _without_duplicates(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
