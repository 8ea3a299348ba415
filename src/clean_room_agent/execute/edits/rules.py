"""Which files an edit may touch: the step's targets and what its context shows, and never what protects the tests."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from clean_room_agent import globs
from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.edits import EditCode, PatchEdit
from clean_room_agent.artifacts.plans import FileRole, TargetFile
from clean_room_agent.execute.edits.paths import is_control_path, path_fault
from clean_room_agent.path_kinds import is_test_configuration, is_test_path

PACKAGE_JSON_TEST_KEYS = ("scripts", "jest", "vitest", "mocha", "ava", "babel", "type", "exports", "main")
UNREADABLE = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRules:
    """The bounds of one step's edits."""

    targets: tuple[TargetFile, ...]
    """Of the step."""
    planned: tuple[str, ...] = ()
    """What else the plan names: tests and test configuration among them may be edited where the context showed them."""
    protected: tuple[str, ...] = ()
    """Glob patterns of `[edit].protected`."""
    scripts: tuple[str, ...] = ()
    """What the test commands run: edited only where the plan names it, as tests are."""
    uneditable: Mapping[str, str] = field(default_factory=dict)
    """Files that exist and are not text that survives a round trip, or are links: why, by path."""

    def role(self, path: str) -> FileRole | None:
        """What the step is to do with `path`; None if it is not a target."""
        return next((target.role for target in self.targets if target.path == path), None)

    def is_planned(self, path: str) -> bool:
        """Whether the plan names `path`."""
        return self.role(path) is not None or path in self.planned


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an edit does not stand."""

    code: EditCode
    detail: str


def refuse_path(
    edit: PatchEdit, rules: EditRules, package: ContextPackage, *, exists: bool
) -> Refusal | None:
    """Why this step may not touch the edit's file; None when it may."""
    fault = path_fault(edit.file_path)
    if fault and not is_control_path(edit.file_path):
        return Refusal(code=EditCode.WRONG_FILE, detail=fault)
    protection = _protection(edit.file_path, rules, exists=exists)
    if protection:
        return Refusal(code=EditCode.PROTECTED, detail=f"{edit.file_path} {protection}")
    return _refuse_unplanned(edit, rules, package)


def _protection(path: str, rules: EditRules, *, exists: bool) -> str:
    """What protects the file, whatever the edit; "" if nothing does."""
    if is_control_path(path):
        return "steers git or cra and is never edited"
    if globs.matches(path, rules.protected):
        return "is protected by [edit].protected"
    if path in rules.uneditable:
        return f"is not editable: {rules.uneditable[path]}"
    decides = is_test_path(path) or is_test_configuration(path) or path in rules.scripts
    if exists and not rules.is_planned(path) and decides:
        return "decides whether tests pass, and the plan does not name it"
    return ""


def _refuse_unplanned(edit: PatchEdit, rules: EditRules, package: ContextPackage) -> Refusal | None:
    path, role = edit.file_path, rules.role(edit.file_path)
    if role is None and not _is_shown(path, package):
        detail = f"{path} is neither a target of this step nor shown; edit only: {', '.join(_editable(rules, package))}"
        return Refusal(code=EditCode.WRONG_FILE, detail=detail)
    if edit.kind == "delete" and role != "delete":
        return Refusal(code=EditCode.PROTECTED, detail=f"the plan does not say that {path} is to be deleted")
    if edit.kind == "create" and role is None:
        return Refusal(code=EditCode.WRONG_FILE, detail=f"{path} is not a target of this step")
    return None


def refuse_content(path: str, before: str, after: str, rules: EditRules) -> Refusal | None:
    """Why the changed text may not stand: it alters how tests are run, and the plan does not name the file."""
    if rules.is_planned(path) or tool_settings(path, before) == tool_settings(path, after):
        return None
    detail = f"this changes how the project's tools and tests run, and the plan does not name {path}"
    return Refusal(code=EditCode.PROTECTED, detail=detail)


def tool_settings(path: str, text: str) -> object:
    """What a file that configures more than tests says of tools and tests; equal texts for all other files."""
    name = PurePosixPath(path).name.lower()
    if name == "pyproject.toml":
        try:
            data = tomllib.loads(text)
        except (ValueError, RecursionError):
            return UNREADABLE, text
        return data.get("tool"), data.get("build-system")
    if name == "package.json":
        try:
            package = json.loads(text)
        except (ValueError, RecursionError):
            return UNREADABLE, text
        return [package.get(key) for key in PACKAGE_JSON_TEST_KEYS] if isinstance(package, dict) else text
    return None


def only_symbols_shown(path: str, rules: EditRules, package: ContextPackage) -> bool:
    """Whether the step may edit nothing of `path` but the symbols that the context shows."""
    return rules.role(path) is None and all(
        item.symbol is not None for item in package.primary() if item.path == path
    )


def _is_shown(path: str, package: ContextPackage) -> bool:
    return any(item.path == path for item in package.primary())


def _editable(rules: EditRules, package: ContextPackage) -> list[str]:
    return sorted({target.path for target in rules.targets} | {item.path for item in package.primary()})
