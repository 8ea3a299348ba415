"""Plan files: what `cra plan` or a person wrote, for `cra solve` to follow; and the steps in them.

A plan is JSON or TOML. Written by hand it can be short, and what is left out is filled in:

    task = "Splitting a bill loses cents"

    [[steps]]
    description = "Give the cents that are left over to the first people."
    files = ["till/money.py"]

A step has the name `s1`, `s2`, ... unless it is given an `id`, and comes after the one before it. A file is modified if
it exists by then, and created otherwise, unless its name may be a mistyped one; deletion has to be stated. A step that
names no files may change any of the plan's; a plan without steps is a single step.
"""

import difflib
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePath
from typing import Annotated, Any

import tomli_w
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from clean_room_agent.artifacts.plans import (
    FORMAT_VERSION,
    AffectedFile,
    Change,
    ChangeAction,
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
from clean_room_agent.execute.edits.rules import Places
from clean_room_agent.execute.plan_validation import (
    artifact_faults,
    filled_role,
    in_order,
    meta_plan_faults,
    mistyped,
    part_plan_faults,
    place_faults,
    shortened,
)

SINGLE_ID = "plan"
"""The name of the only part of a reviewed plan, and of its only step if it is followed as one."""
ACTIONS: dict[FileRole, ChangeAction] = {"modify": "modify", "create": "add", "delete": "delete"}
ONLY_IN_FULL = frozenset({"affected_files", "execution_order", "meta_plan", "part_plans", "task_id"})
HINT = "correct the field that the message names"
SHORT_HINT = (
    'a plan is task = "..." and [[steps]], each with a description and files; `cra plan --help` shows one'
)
HEADER = """\
# A plan for `cra solve --plan FILE`. The steps are done in this order; the tests run after each.
# Change, add or remove what you like: only description and files are needed for a step. A file is modified where it
# exists and created where not; to delete one: files = [{path = "src/old.py", role = "delete"}]
"""


class _Short(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ShortFile(_Short):
    """A file, and its role if that is not to be filled in; a plain string is its path."""

    path: Annotated[
        str,
        BeforeValidator(lambda value: value.strip().removeprefix("./") if isinstance(value, str) else value),
    ]
    role: FileRole | None = None


Files = tuple[
    Annotated[ShortFile, BeforeValidator(lambda value: {"path": value} if isinstance(value, str) else value)],
    ...,
]


class ShortStep(_Short):
    """A step; a plain string is its description."""

    description: str = Field(pattern=r"\S")
    files: Files = ()
    symbols: tuple[str, ...] = ()
    id: str = ""
    depends_on: tuple[str, ...] = ()
    any_of_files: bool = False


class ShortEvidence(PlanEvidence):
    """How the task is judged, and where it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ShortPlan(_Short):
    """The whole file."""

    task: str = Field(pattern=r"\S")
    task_summary: str = ""
    rationale: str = ""
    files: Files = ()
    evidence: ShortEvidence = ShortEvidence()
    steps: tuple[
        Annotated[
            ShortStep,
            BeforeValidator(lambda value: {"description": value} if isinstance(value, str) else value),
        ],
        ...,
    ] = ()


def load_plan(text: str, source: str, paths: Collection[str] = ()) -> PlanArtifact | MetaPlan:
    """The plan in a file's text. `source` names the file; `paths` are those in the tree, where names are looked up. JSON
    with `parts` is a `MetaPlan`.

    Raises:
        ArtifactError: neither JSON nor TOML, made by a newer program, or something in it is missing or wrong; the message
            names the field.
    """
    plain = text.removeprefix("\ufeff")
    if is_toml(plain, source):
        try:
            return _complete_plan(load_toml(plain), source, paths)
        except (ValueError, RecursionError) as exc:
            raise ArtifactError(f"{source} is not valid TOML: {exc}", hint=SHORT_HINT) from exc
    try:
        data = json.loads(plain)
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode(
            "utf-8"
        )  # half a character, or no number
    except (ValueError, RecursionError) as exc:
        raise ArtifactError(f"{source} is not valid JSON: {exc}") from exc
    if not isinstance(data, dict):
        raise ArtifactError(
            f"{source}: a plan is a JSON object", hint="write one with `cra plan TASK -o FILE`"
        )
    if "parts" not in data and not ONLY_IN_FULL & data.keys():
        return _complete_plan(data, source, paths)
    version = data.get("version", FORMAT_VERSION)
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise ArtifactError(f"{source}: version: {version} is newer than this program's {FORMAT_VERSION}")
    plan = _validate_plan(data, source)
    if isinstance(plan, MetaPlan):
        faults = tuple(f"parts: {fault}" for fault in meta_plan_faults(plan, max_parts=len(plan.parts)))
    else:
        faults = artifact_faults(plan)
        if paths and not faults:
            faults = tuple(place_faults(plan_from_artifact(plan).steps, Places.of(paths)))
    if faults:
        raise ArtifactError(f"{source}: " + "; ".join(faults), hint=HINT)
    return plan


def is_toml(text: str, source: str) -> bool:
    """Whether a file's text is in TOML, as a person writes it."""
    suffix = PurePath(source).suffix.lower()
    return suffix == ".toml" or (suffix != ".json" and text.lstrip("\ufeff \t\r\n")[:1] != "{")


def _validate_plan(data: Mapping[str, Any], source: str) -> PlanArtifact | MetaPlan:
    kind = MetaPlan if "parts" in data else PlanArtifact
    try:
        return kind.model_validate(data)
    except ValidationError as exc:
        faults = [f"{'.'.join(map(str, error['loc'])) or 'plan'}: {error['msg']}" for error in exc.errors()]
        raise ArtifactError(f"{source}: " + "; ".join(faults), hint=HINT) from exc


def _complete_plan(data: Mapping[str, Any], source: str, paths: Collection[str]) -> PlanArtifact:
    """The plan with what it leaves out.

    Raises:
        ArtifactError: it is no plan.
    """
    try:
        short = ShortPlan.model_validate(data)
    except ValidationError as exc:
        faults = [_fault_of(error["loc"], error["type"], error["msg"]) for error in exc.errors()]
        raise ArtifactError(f"{source}: " + "; ".join(faults), hint=SHORT_HINT) from exc
    steps, faults = _filled_steps(short, paths)
    summary = short.task_summary.strip() or shortened(short.task)
    plan = PartPlan(part_id=SINGLE_ID, task_summary=summary, steps=steps, rationale=short.rationale.strip())
    faults = faults or list(part_plan_faults(plan, paths=paths, max_steps=len(steps)))
    if faults:
        raise ArtifactError(f"{source}: " + "; ".join(faults), hint=SHORT_HINT)
    files = tuple(dict.fromkeys(target.path for step in steps for target in step.target_files))
    part = Part(id=SINGLE_ID, description=summary, affected_files=files)
    artifact = build_artifact(
        task_id="",
        task=short.task.strip(),
        model="",
        created_at="",
        meta_plan=MetaPlan(task_summary=summary, parts=(part,), rationale=plan.rationale),
        part_plans=(plan,),
    )
    evidence = PlanEvidence(**short.evidence.model_dump())
    return artifact.model_copy(update={"as_steps": True, "evidence": evidence})


def _fault_of(loc: tuple[int | str, ...], kind: str, message: str) -> str:
    """What is wrong at a place like `steps[2].files`, counted from 1."""
    place = "".join(f"[{key + 1}]" if isinstance(key, int) else f".{key}" for key in loc).lstrip(".")
    if kind == "missing":
        return f"{place}: missing"
    if kind != "extra_forbidden":
        return f"{place or 'plan'}: {'it is empty' if kind == 'string_pattern_mismatch' else message}"
    below = {
        "evidence": ShortEvidence,
        "steps": ShortFile if "files" in loc else ShortStep,
        "files": ShortFile,
    }
    table = below[str(loc[0])] if len(loc) > 1 else ShortPlan
    near = difflib.get_close_matches(str(loc[-1]), table.model_fields, n=1)
    known = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(table.model_fields)}"
    return f"{place}: unknown key; {known}"


def _filled_steps(short: ShortPlan, paths: Collection[str]) -> tuple[tuple[PlanStep, ...], list[str]]:
    """The completed steps, and faults where something cannot be filled in."""
    if not short.files and not short.steps:
        return (), ["steps: missing; each has a description and files"]
    faults = []
    now, made = set(paths), []
    for number, step in enumerate(short.steps or (ShortStep(description=short.task, id="s1"),), 1):
        targets = []
        for file in step.files or short.files:
            meant = mistyped(file.path, now) if file.role is None and file.path not in now else ""
            if meant:
                new = f'{{path = "{file.path}", role = "create"}} for a new file'
                faults.append(f"steps[{number}].files: {file.path} does not exist; write {meant!r}, or {new}")
            targets.append(TargetFile(path=file.path, role=file.role or filled_role(file.path, now)))
        if not targets:
            faults.append(f'steps[{number}]: which files does it change? Write files = ["src/a.py"]')
        _carry_out(targets, now)
        made.append(
            PlanStep(
                id=step.id or f"s{number}",
                description=step.description.strip(),
                target_files=tuple(targets),
                target_symbols=step.symbols,
                depends_on=step.depends_on,
                any_of_files=step.any_of_files or (not step.files and len(targets) > 1),
            )
        )
    return tuple(made), faults


def written_text(plan: PlanArtifact, paths: Collection[str]) -> str:
    """The plan as a person would write it in TOML, with a comment on how to edit it; reading it gives the plan's steps in
    order. `paths` are those in the tree.

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
        table["files"] = [_short_file(target, now) for target in step.target_files]
        optional = {
            "symbols": list(step.target_symbols),
            "depends_on": list(step.depends_on),
            "any_of_files": step.any_of_files,
        }
        tables.append(table | {key: value for key, value in optional.items() if value})
        _carry_out(step.target_files, now)
    top: dict[str, Any] = {"task": plan.task, "task_summary": plan.task_summary, "rationale": plan.rationale}
    told = plan.evidence
    evidence = {"tests": told.tests, "checks": told.checks, "files": told.files}
    if any(evidence.values()):
        top["evidence"] = {key: list(values) for key, values in evidence.items() if values}
    return f"{HEADER}\n{tomli_w.dumps({**top, 'steps': tables}, multiline_strings=True)}"


def _carry_out(targets: Collection[TargetFile], now: set[str]) -> None:
    for target in targets:
        (now.discard if target.role == "delete" else now.add)(target.path)


def _short_file(target: TargetFile, now: Collection[str]) -> object:
    """The file as a person would write it: only its path if that implies its role."""
    plain = target.role == filled_role(target.path, now)
    if plain and (target.path in now or not mistyped(target.path, now)):
        return target.path
    return {"path": target.path, "role": target.role}


def build_artifact(
    *,
    task_id: str,
    task: str,
    model: str,
    created_at: str,
    meta_plan: MetaPlan,
    part_plans: tuple[PartPlan, ...],
) -> PlanArtifact:
    """The reviewable plan of a whole task. Changes and the order name steps as `part/step`."""
    steps = {f"{part}/{step.id}": (part, step) for part, step in _steps_in_order(meta_plan, part_plans)}
    needs = {
        name: tuple(f"{part}/{need}" for need in step.depends_on) for name, (part, step) in steps.items()
    }
    depended = {name: tuple(other for other in steps if name in needs[other]) for name in steps}
    changes: dict[str, list[Change]] = {}
    roles: dict[str, FileRole] = {}
    for name, (_, step) in steps.items():
        for target in step.target_files:
            roles[target.path] = _merged_role(roles.get(target.path), target.role)
            symbols = step.target_symbols if len(step.target_files) == 1 and step.target_symbols else ("",)
            changes.setdefault(target.path, []).extend(
                Change(
                    symbol=symbol,
                    action=ACTIONS[target.role],
                    description=step.description,
                    depends_on=needs[name],
                    depended_by=depended[name],
                )
                for symbol in symbols
            )
    return PlanArtifact(
        task_summary=meta_plan.task_summary,
        affected_files=tuple(
            AffectedFile(path=path, role=roles[path], changes=tuple(found)) for path, found in changes.items()
        ),
        execution_order=tuple(steps),
        rationale=meta_plan.rationale,
        task_id=task_id,
        task=task,
        model=model,
        created_at=created_at,
        meta_plan=meta_plan,
        part_plans=part_plans,
    )


def step_from_artifact(plan: PlanArtifact) -> PlanStep:
    """The single step that does everything in the reviewed plan; its id is `plan`."""
    lines = [plan.task_summary.strip()]
    symbols: list[str] = []
    for file in plan.affected_files:
        lines.append(f"- {file.role} {file.path}")
        for change in file.changes:
            symbols.append(change.symbol)
            subject = f"{change.action} {change.symbol}: " if change.symbol else ""
            lines.append(f"  - {subject}{change.description.strip()}")
    return PlanStep(
        id=SINGLE_ID,
        description="\n".join(dict.fromkeys(line for line in lines if line)),
        target_files=tuple(TargetFile(path=file.path, role=file.role) for file in plan.affected_files),
        target_symbols=tuple(dict.fromkeys(symbol for symbol in symbols if symbol)),
    )


def plan_from_artifact(plan: PlanArtifact) -> PartPlan:
    """The reviewed plan as one part, with its own steps if it says so, otherwise with a single one for everything."""
    return PartPlan(
        part_id=SINGLE_ID,
        task_summary=plan.task_summary,
        steps=_in_one_part(plan) if plan.as_steps else (step_from_artifact(plan),),
        rationale=plan.rationale,
    )


def _merged_role(earlier: FileRole | None, later: FileRole) -> FileRole:
    """What the plan as a whole does with a file."""
    if earlier == "create" and later == "modify":
        return "create"
    if earlier == "delete" and later == "create":
        return "modify"
    return later


def _steps_in_order(meta_plan: MetaPlan, part_plans: Iterable[PartPlan]) -> list[tuple[str, PlanStep]]:
    """All steps in the order in which they are done, each with the id of its part."""
    plans = {plan.part_id: {step.id: step for step in plan.steps} for plan in part_plans}
    return [
        (part, steps[name])
        for part in in_order({part.id: part.depends_on for part in meta_plan.parts})
        for steps in (plans.get(part, {}),)
        for name in in_order({name: step.depends_on for name, step in steps.items()})
    ]


def _in_one_part(plan: PlanArtifact) -> tuple[PlanStep, ...]:
    """The steps of all parts in the order in which they are done; if there are several parts, their ids are made
    unique.
    """
    done = _steps_in_order(plan.meta_plan, plan.part_plans)
    if len(plan.meta_plan.parts) == 1:
        return tuple(step for _, step in done)
    names = {(part, step.id): f"s{number}" for number, (part, step) in enumerate(done, 1)}
    return tuple(
        step.model_copy(
            update={
                "id": names[part, step.id],
                "depends_on": tuple(names[part, need] for need in step.depends_on),
            }
        )
        for part, step in done
    )
