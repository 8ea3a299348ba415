"""What a result changes that decides whether its tests pass: their files, configuration, and what they judge by.

Some of it the user's own versions replace to judge the result once more; code that replaces what JavaScript's tests judge by
is read from the diff, since no report of theirs would show it.
"""

import posixpath
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from msgspec import Struct

from clean_room_agent.execute.edits.rules import tool_settings
from clean_room_agent.git.commits import FileChange
from clean_room_agent.git.history import ChangedPath
from clean_room_agent.orchestrator.commits import Tree
from clean_room_agent.path_kinds import (
    is_ci,
    is_test_configuration,
    is_test_module,
    is_test_path,
    shadows_runner,
)

Kind = Literal["test", "test configuration", "CI"]
Change = Literal["created", "changed", "deleted"]
CHANGES: Mapping[str, Change] = {"A": "created", "D": "deleted", "M": "changed", "T": "changed"}


class Touched(Struct, frozen=True, kw_only=True):
    """One file of a result that decides whether tests pass."""

    path: str
    kind: Kind
    change: Change
    asked: bool
    """Whether the user named it: in the task, or in a plan that was given."""

    @property
    def left_out(self) -> bool:
        """Whether the last judging run goes without this change.

        It does without new tests, and without test configuration that only the model's own plan names. Tests that the
        plan changes or deletes stay as they are, and so do files beside the tests, which nothing collects.
        """
        if self.kind == "test":
            return self.change == "created" and is_test_module(self.path)
        return self.kind == "test configuration" and not self.asked


def touched_files(
    base: Tree,
    head: Tree,
    changed: Collection[ChangedPath],
    *,
    scripts: Collection[str],
    asked: Collection[str],
    task: str,
) -> tuple[Touched, ...]:
    """Those among the paths that changed between `base` and `head`, sorted by path.

    `scripts` are what the test commands run, `asked` the paths of a plan that the user gave.
    """
    found = []
    for one in changed:
        change = CHANGES[one.status]
        kind = _kind(base, head, one.path, change, scripts)
        if kind is not None:
            named = one.path in asked or names_file(task, one.path)
            found.append(Touched(path=one.path, kind=kind, change=change, asked=named))
    return tuple(sorted(found, key=lambda touched: touched.path))


def names_file(words: str, path: str) -> bool:
    """Whether `words` name the file, by its path or by its name."""
    name = re.escape(posixpath.basename(path))
    return path in words or re.search(rf"(?<![\w/.-]){name}(?![\w/-])", words) is not None


def restored_changes(base: Tree, touched: Collection[Touched]) -> dict[str, FileChange | None]:
    """What undoes those of `touched` that are left out; empty when there is nothing to undo."""
    return {one.path: base.change(one.path) for one in touched if one.left_out}


def _kind(base: Tree, head: Tree, path: str, change: Change, scripts: Collection[str]) -> Kind | None:
    if is_ci(path):
        return "CI"
    if is_test_configuration(path) or path in scripts:
        return "test configuration"
    if change == "created" and shadows_runner(path):
        return "test configuration"
    if is_test_path(path):
        return "test"
    settings = [tool_settings(path, _text(tree, path)) for tree in (base, head)]
    return "test configuration" if settings[0] != settings[1] else None


def _text(tree: Tree, path: str) -> str:
    data = tree.data(path)
    if data is None:
        return "{}" if path.endswith(".json") else ""
    return data.decode("utf-8", "replace")


SCRIPT = re.compile(r"\.(?:[cm]?[jt]sx?|vue|svelte)\Z")
JUDGES = (
    r"(?:expect|assert|it|test|describe|suite|specify|beforeEach|afterEach|before|after|beforeAll|afterAll)"
)
ASSIGNED = r"\s*(?:\?\?|\|\||&&)?=(?![=>])"
TAMPERING = re.compile(
    rf"(?:\b(?:globalThis|global|window|self)(?:\.|\[['\"`]){JUDGES}\b['\"`]?\]?(?:\.\w+)*{ASSIGNED}"
    rf"|\bObject\.(?:defineProperty|assign)\(\s*(?:globalThis|global|window|self)\b[^)]*\b(?:expect|assert)\b"
    rf"|\brequire\(['\"`](?:node:)?(?:assert|test|chai|vitest|@jest/globals|expect)(?:/\w+)?['\"`]\)(?:\.\w+)+{ASSIGNED}"
    rf"|\b(?:assert|expect)\.(?!extend\b)\w+(?:\.\w+)*{ASSIGNED}"
    rf"|\bprocess\.(?:exit|reallyExit){ASSIGNED})"
)


def tampering(diff: str) -> tuple[str, ...]:
    """`path: line` for each line that the unified `diff` adds, outside of tests, and that replaces a judge; in order."""
    return tuple(
        f"{path}: {line.strip()}"
        for path, line in _added(diff.split("\n"))
        if SCRIPT.search(path)
        and not is_test_path(path)
        and not is_test_configuration(path)
        and TAMPERING.search(line)
    )


def _added(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    path = ""
    for line in lines:
        if line.startswith("+++ "):
            path = line.removeprefix("+++ ").removeprefix("b/").rstrip("\t")
        elif line.startswith("+"):
            yield path, line[1:]
