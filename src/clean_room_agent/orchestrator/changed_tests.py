"""What a result changes about its own tests: which of its files decide whether tests pass, and code that replaces assertions.

Code that replaces JavaScript's assertions is found in the diff, since no report would show it.
"""

import re
from collections.abc import Collection, Mapping
from typing import Literal

from msgspec import Struct

from clean_room_agent.execute.edits.rules import tool_settings
from clean_room_agent.git.commits import FileChange
from clean_room_agent.git.history import ChangedPath
from clean_room_agent.orchestrator.commits import Tree
from clean_room_agent.orchestrator.run import names_file
from clean_room_agent.orchestrator.test_runs.deciding import Deciding
from clean_room_agent.paths import is_ci, is_test_configuration, is_test_module, is_test_path
from clean_room_agent.unified_diff import file_diffs

Kind = Literal["test", "test support", "test configuration", "CI"]
"""Test support is what tests use: their helpers and data, and the scripts that run them."""
Change = Literal["created", "changed", "deleted"]
CHANGES: Mapping[str, Change] = {"A": "created", "D": "deleted", "M": "changed", "T": "changed"}
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
EXAMPLE = re.compile(r"(?m)^[ \t]*>>>.*(?:\n(?![ \t]*(?:\"{3}|'{3}))[ \t]*\S.*)*")
"""An example in a docstring, with what it gives."""


class Touched(Struct, frozen=True, kw_only=True):
    """One file of a result that decides whether tests pass."""

    path: str
    kind: Kind
    change: Change
    asked: bool
    """Whether the user named it: in the task, or in a plan that was given."""

    @property
    def is_new_test(self) -> bool:
        """Whether it is a new file from which runners collect tests."""
        return self.kind == "test" and self.change == "created" and is_test_module(self.path)

    @property
    def left_out(self) -> bool:
        """Whether the last judging run leaves out this change. It leaves out new tests, and test configuration
        and test support that only the model's own plan names. Tests that the plan changes or deletes stay as they are,
        and so do new files next to the tests that no runner collects.
        """
        if self.kind == "test":
            return self.is_new_test
        return self.kind in {"test configuration", "test support"} and not self.asked


def touched_files(
    base: Tree,
    head: Tree,
    changed: Collection[ChangedPath],
    *,
    deciding: Deciding,
    asked: Collection[str],
    task: str,
    tested: Collection[str] = (),
) -> tuple[Touched, ...]:
    """Those among the paths that changed between `base` and `head`, sorted by path.

    `deciding` is what the base shows, `asked` the paths of a plan that the user gave, `tested` are names of tests that ran at
    the base.
    """
    found: dict[str, Touched] = {}
    # A new file may hide one whose deletion is undone to judge: what else is gone is known by then.
    for one in sorted(changed, key=lambda one: (one.status != "D", one.path)):
        change = CHANGES[one.status]
        gone = {
            other.path
            for other in changed
            if other.status == "D" and not (other.path in found and found[other.path].left_out)
        }
        hides = change == "created" and deciding.hides(one.path, gone) != ""
        kind = "test configuration" if hides else _file_kind(base, head, one.path, deciding)
        if kind is None and change != "created" and _has_other_tests(base, head, one.path, tested, deciding):
            kind = "test"
        if kind is not None:
            named = one.path in asked or names_file(task, one.path)
            found[one.path] = Touched(path=one.path, kind=kind, change=change, asked=named)
    return tuple(sorted(found.values(), key=lambda touched: touched.path))


def restored_changes(
    base: Tree, touched: Collection[Touched], unloaded: Collection[str] = ()
) -> dict[str, FileChange | None]:
    """The changes that undo those of `touched` that are left out, or are in `unloaded`: test files that could not be
    loaded at the base, so that only now their tests can be counted. Empty if there is nothing to undo.
    """
    undone = (one for one in touched if one.left_out or (one.kind == "test" and one.path in unloaded))
    return {one.path: base.change(one.path) for one in undone}


def _file_kind(base: Tree, head: Tree, path: str, deciding: Deciding) -> Kind | None:
    if is_ci(path):
        return "CI"
    if is_test_configuration(path):
        return "test configuration"
    if deciding.decides(path):
        return "test support"
    if is_test_path(path):
        return "test"
    settings = [tool_settings(path, _file_text(tree, path)) for tree in (base, head)]
    return "test configuration" if settings[0] != settings[1] else None


def _has_other_tests(base: Tree, head: Tree, path: str, tested: Collection[str], deciding: Deciding) -> bool:
    """Whether tests of the file ran, or it has tests, though its name does not say so; if they are examples in docstrings,
    whether these changed.
    """
    inner = [name.removeprefix(f"{path}::") for name in tested if name.startswith(f"{path}::")]
    names = path.removesuffix(".py").removesuffix("/__init__").split("/")
    modules = tuple(
        ".".join((*names[first:], "")) for first in range(len(names))
    )  # from whatever folder it is imported
    if inner and all("::" not in one and f"{one}.".startswith(modules) for one in inner):
        return EXAMPLE.findall(_file_text(base, path)) != EXAMPLE.findall(_file_text(head, path))
    return bool(inner) or deciding.holds_tests(path)


def _file_text(tree: Tree, path: str) -> str:
    data = tree.data(path)
    if data is None:
        return "{}" if path.endswith(".json") else ""
    return data.decode("utf-8", "replace")


def tampering(diff: str) -> tuple[str, ...]:
    """`path: line` for each line that the unified `diff` adds outside of tests and that replaces an assertion function;
    in order.
    """
    return tuple(
        f"{file.path}: {line.text.strip()}"
        for file in file_diffs(diff)
        if SCRIPT.search(file.path) and not is_test_path(file.path) and not is_test_configuration(file.path)
        for line in file.lines
        if line.kind == "added" and TAMPERING.search(line.text)
    )
