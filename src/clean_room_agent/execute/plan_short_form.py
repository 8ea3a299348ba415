"""Reads and writes plans in the short form for people: the task, the files and the steps, in TOML or JSON. What is left
out is filled in.

    task = "Splitting a bill loses cents"

    [[steps]]
    description = "Give the cents that are left over to the first people."
    files = ["till/money.py"]

A step has the name `s1`, `s2`, ... unless it is given an `id`, and comes after the one before it. A file is modified if
it exists by then, and created otherwise, unless its name may be a mistyped one; deletion has to be stated. A step that
names no files may change any of the plan's; a plan without steps is a single step.
"""

import difflib
import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any

import tomli_w
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from clean_room_agent.artifacts.plans import (
    FileRole,
    MetaPlan,
    Part,
    PartPlan,
    PlanArtifact,
    PlanEvidence,
    PlanStep,
    TargetFile,
)
from clean_room_agent.config import load_toml
from clean_room_agent.errors import ArtifactError
from clean_room_agent.execute.fallback_plans import shortened
from clean_room_agent.execute.plan_artifact import SINGLE_ID, build_artifact, plan_from_artifact
from clean_room_agent.execute.plan_validation import (
    artifact_faults,
    filled_role,
    mistyped,
    part_plan_faults,
)

MAX_LOCATED_LINES = 1_000
"""In a longer file no line numbers are looked for, since each prefix of it would be parsed."""
EXAMPLES = {
    "task": 'task = "what is to be changed"',
    "steps": '[[steps]] and below it description = "what it changes" and files = ["src/a.py"]',
    "description": 'description = "what the step changes"',
    "files": 'files = ["src/a.py"]',
    "path": 'path = "src/a.py"',
    "role": 'role = "modify", "create" or "delete"',
    "symbols": 'symbols = ["parse", "Parser.read"]',
    "id": 'id = "s1"',
    "depends_on": 'depends_on = ["s1"]',
    "any_of_files": "any_of_files = true",
    "task_summary": 'task_summary = "the task in one sentence"',
    "rationale": 'rationale = "what to keep in mind"',
    "checks": 'checks = ["assert split(100, 3) == [34, 33, 33]"]',
    "tests": 'tests = ["tests/test_money.py::test_split"]',
}
HEADER = """\
# A plan for `cra solve --plan FILE`. The steps are done in this order; the tests run after each.
# Change, add or remove what you like: only description and files are needed for a step. A file is modified where it
# exists and created where not; to delete one: files = [{path = "src/old.py", role = "delete"}]
"""
Loc = tuple[int | str, ...]


def _path(value: object) -> object:
    return value.strip().removeprefix("./") if isinstance(value, str) else value


def _file(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


def _step(value: object) -> object:
    return {"description": value} if isinstance(value, str) else value


class _Written(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WrittenFile(_Written):
    """A file, and its role if that is not to be filled in."""

    path: Annotated[str, BeforeValidator(_path)]
    role: FileRole | None = None


Files = tuple[Annotated[WrittenFile, BeforeValidator(_file)], ...]


class WrittenStep(_Written):
    """A step; a plain string is its description."""

    description: str = Field(pattern=r"\S")
    files: Files = ()
    symbols: tuple[str, ...] = ()
    id: str = ""
    depends_on: tuple[str, ...] = ()
    any_of_files: bool = False


class WrittenEvidence(_Written):
    """How the task is judged, and where it is."""

    tests: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class WrittenPlan(_Written):
    """The whole file."""

    task: str = Field(pattern=r"\S")
    task_summary: str = ""
    rationale: str = ""
    files: Files = ()
    evidence: WrittenEvidence = WrittenEvidence()
    steps: tuple[Annotated[WrittenStep, BeforeValidator(_step)], ...] = ()


def read_written(text: str, source: str, paths: Collection[str]) -> PlanArtifact:
    """The plan in TOML, completed; `paths` are those in the tree.

    Raises:
        ArtifactError: the text is not TOML, or no plan; the message names the key, its line, and what to write.
    """
    try:
        data = load_toml(text)
    except (ValueError, RecursionError) as exc:
        raise ArtifactError(
            f"{source} is not valid TOML: {exc}", hint=f"a plan begins with {EXAMPLES['task']}"
        ) from exc
    return from_written(data, source, paths, text=text)


def from_written(
    data: Mapping[str, Any], source: str, paths: Collection[str], *, text: str = ""
) -> PlanArtifact:
    """The plan in a file's tables, completed; `text` is the file's TOML, to find line numbers.

    Raises:
        ArtifactError: it is no plan.
    """
    try:
        written = WrittenPlan.model_validate(data)
    except ValidationError as exc:
        faults = [
            _said(text, error["loc"], error["type"], error["msg"].removeprefix("Value error, "))
            for error in exc.errors()
        ]
        raise _error(source, faults) from exc
    plan, found = _filled(written, paths)
    if not found:
        found = _plan_faults(plan, paths)
    if found:
        raise _error(source, [f"{_place(text, loc)}: {fault}" for loc, fault in found])
    files = tuple(dict.fromkeys(target.path for step in plan.steps for target in step.target_files))
    summary = plan.task_summary
    return build_artifact(
        task_id="",
        task=written.task.strip(),
        model="",
        created_at="",
        meta_plan=MetaPlan(
            task_summary=summary,
            parts=(Part(id=SINGLE_ID, description=summary, affected_files=files),),
            rationale=plan.rationale,
        ),
        part_plans=(plan,),
    ).model_copy(
        update={
            "as_steps": True,
            "evidence": PlanEvidence(
                tests=written.evidence.tests,
                checks=written.evidence.checks,
                files=written.evidence.files,
            ),
        }
    )


def written_text(plan: PlanArtifact, paths: Collection[str]) -> str:
    """The plan as a person would write it, with a comment on how to edit it; reading it gives the plan's steps in
    order.

    Raises:
        ArtifactError: its steps cannot be followed one by one.
    """
    followed = plan.model_copy(update={"as_steps": True})
    faults = artifact_faults(followed)
    if faults:
        raise ArtifactError(f"the plan cannot be written as steps: {'; '.join(faults)}")
    steps = plan_from_artifact(followed).steps
    now = set(paths)
    tables = []
    needed = {need for step in steps for need in step.depends_on}
    for number, step in enumerate(steps, 1):
        table: dict[str, Any] = {"id": step.id} if step.id in needed or step.id != f"s{number}" else {}
        table["description"] = step.description
        table["files"] = [_shown(target, now) for target in step.target_files]
        optional = {
            "symbols": list(step.target_symbols),
            "depends_on": list(step.depends_on),
            "any_of_files": step.any_of_files,
        }
        tables.append(table | {key: value for key, value in optional.items() if value})
        _carry_out(step.target_files, now)
    top: dict[str, Any] = {
        "task": plan.task,
        "task_summary": plan.task_summary,
        "rationale": plan.rationale,
    }
    told = plan.evidence
    evidence = {"tests": told.tests, "checks": told.checks, "files": told.files}
    if any(evidence.values()):
        top["evidence"] = {key: list(values) for key, values in evidence.items() if values}
    return f"{HEADER}\n{tomli_w.dumps({**top, 'steps': tables}, multiline_strings=True)}"


def _filled(written: WrittenPlan, paths: Collection[str]) -> tuple[PartPlan, list[tuple[Loc, str]]]:
    """The completed plan, and faults where something cannot be filled in."""
    steps = written.steps or (WrittenStep(description=written.task, id="s1"),)
    faults: list[tuple[Loc, str]] = []
    if not written.files and not written.steps:
        faults.append((("steps",), f"missing; write {EXAMPLES['steps']}"))
    now, made = set(paths), []
    for index, step in enumerate(steps):
        loc: Loc = ("steps", index, "files") if step.files else ("files",)
        targets = []
        for file in step.files or written.files:
            meant = mistyped(file.path, now) if file.role is None and file.path not in now else ""
            if meant:
                faults.append((loc, f"{file.path} does not exist; write {meant!r}, or {_created(file.path)}"))
            targets.append(TargetFile(path=file.path, role=file.role or filled_role(file.path, now)))
        if not targets and written.steps:
            faults.append((("steps", index), f"which files does it change? Write {EXAMPLES['files']}"))
        _carry_out(targets, now)
        made.append(
            PlanStep(
                id=step.id or f"s{index + 1}",
                description=step.description.strip(),
                target_files=tuple(targets),
                target_symbols=step.symbols,
                depends_on=step.depends_on,
                any_of_files=step.any_of_files or (not step.files and len(targets) > 1),
            )
        )
    summary = written.task_summary.strip() or shortened(written.task)
    plan = PartPlan(
        part_id=SINGLE_ID, task_summary=summary, steps=tuple(made), rationale=written.rationale.strip()
    )
    return plan, faults


def _plan_faults(plan: PartPlan, paths: Collection[str]) -> list[tuple[Loc, str]]:
    """The faults of the plan's steps, each with the step that it begins with."""
    found: list[tuple[Loc, str]] = []
    numbers = {step.id: index for index, step in enumerate(plan.steps)}
    for fault in part_plan_faults(plan, paths=paths, max_steps=len(plan.steps)):
        named = re.match(r"step (?:id )?(?:'([^']*)'|([^\s:]+))", fault)
        index = numbers.get(named[1] or named[2]) if named else None
        found.append((("steps",) if index is None else ("steps", index), fault))
    return found


def _carry_out(targets: Collection[TargetFile], now: set[str]) -> None:
    for target in targets:
        (now.discard if target.role == "delete" else now.add)(target.path)


def _shown(target: TargetFile, now: Collection[str]) -> object:
    """The file as a person would write it: only its path if that implies its role."""
    plain = target.role == filled_role(target.path, now)
    if plain and (target.path in now or not mistyped(target.path, now)):
        return target.path
    return {"path": target.path, "role": target.role}


def _created(path: str) -> str:
    return f'{{path = "{path}", role = "create"}} for a new file'


def _error(source: str, faults: list[str]) -> ArtifactError:
    return ArtifactError(
        f"{source}: " + "; ".join(faults),
        hint='a plan is task = "..." and [[steps]], each with a description and files; `cra plan --help` shows one',
    )


def _said(text: str, loc: Loc, kind: str, message: str) -> str:
    keys = [key for key in loc if isinstance(key, str)]
    key = keys[-1] if keys else "plan"
    place = _place(text, loc)
    if kind == "extra_forbidden":
        below = (WrittenEvidence,) if keys[0] == "evidence" else (WrittenStep, WrittenFile)
        known = (WrittenPlan, *below)[min(len(keys) - 1, len(below))].model_fields
        near = difflib.get_close_matches(key, known, n=1)
        return f"{place}: unknown key" + (
            f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"
        )
    example = f"; write {EXAMPLES[key]}" if key in EXAMPLES else ""
    if kind == "missing":
        return f"{place}: missing{example}"
    return f"{place}: {'it is empty' if kind == 'string_pattern_mismatch' else message}{example}"


def _place(text: str, loc: Loc) -> str:
    """The place of a value, like `steps[2].files` with its line; both count from 1."""
    named = "".join(f"[{key + 1}]" if isinstance(key, int) else f".{key}" for key in loc).lstrip(".")
    line = _line_of(text, loc)
    return f"line {line}: {named}" if line else named or "plan"


def _line_of(text: str, loc: Loc) -> int:
    """The 1-based line that ends the value at `loc`, or the nearest table around it; 0 if there is none.

    It is found by parsing ever longer prefixes of the file: the first with the value ends at that line.
    """
    lines = text.splitlines(keepends=True)
    if len(lines) > MAX_LOCATED_LINES:
        return 0
    best, depth = 0, 0
    for number in range(1, len(lines) + 1):
        try:
            data = load_toml("".join(lines[:number]))
        except (ValueError, RecursionError):
            continue
        reached = _depth(data, loc)
        if reached > depth:
            best, depth = number, reached
        if depth == len(loc):
            break
    return best


def _depth(data: Any, loc: Loc) -> int:
    """How many keys of `loc`, from the first on, exist in `data`."""
    for count, key in enumerate(loc):
        there = isinstance(data, dict) and key in data
        there = there or (isinstance(data, list) and isinstance(key, int) and key < len(data))
        if not there:
            return count
        data = data[key]
    return len(loc)
