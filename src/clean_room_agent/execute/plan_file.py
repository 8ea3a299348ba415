"""Reads plan files, written by `cra plan` or by hand, for `cra solve` to follow."""

import json
import math
from collections.abc import Collection
from pathlib import PurePath
from typing import Any

from pydantic import ValidationError

from clean_room_agent.artifacts.plans import FORMAT_VERSION, MetaPlan, PlanArtifact
from clean_room_agent.errors import ArtifactError
from clean_room_agent.execute.edits.places import Places
from clean_room_agent.execute.plan_artifact import plan_from_artifact
from clean_room_agent.execute.plan_short_form import from_written, read_written
from clean_room_agent.execute.plan_validation import artifact_faults, meta_plan_faults, place_faults

ONLY_IN_ARTIFACTS = frozenset({"affected_files", "execution_order", "meta_plan", "part_plans", "task_id"})
HINT = "correct the field that the message names"


def load_plan(text: str, source: str, paths: Collection[str] = ()) -> PlanArtifact | MetaPlan:
    """The plan in a file's text. `source` names the file; `paths` are those in the tree, for a plan written by hand.
    JSON with `parts` is a `MetaPlan`, JSON with a field that only a `PlanArtifact` has is one; any other JSON, and all
    TOML, was written by hand.

    Raises:
        ArtifactError: neither JSON nor TOML, made by a newer program, or something in it is missing or wrong; the message
            says where, and what to write.
    """
    plain = text.removeprefix("\ufeff")
    if not _is_json(plain, source):
        return read_written(plain, source, paths)
    data = _json(plain, source)
    if "parts" not in data and not ONLY_IN_ARTIFACTS & data.keys():
        return from_written(data, source, paths)
    version = data.get("version", FORMAT_VERSION)
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise ArtifactError(f"{source}: version: {version} is newer than this program's {FORMAT_VERSION}")
    plan = _validated(data, source)
    if isinstance(plan, PlanArtifact) and paths:
        faults = place_faults(plan_from_artifact(plan).steps, Places.of(paths))
        if faults:
            raise ArtifactError(f"{source}: " + "; ".join(faults), hint=HINT)
    return plan


def is_written(text: str, source: str) -> bool:
    """Whether a file's text is a plan in TOML, as a person writes it."""
    return not _is_json(text.removeprefix("\ufeff"), source)


def _is_json(text: str, source: str) -> bool:
    suffix = PurePath(source).suffix.lower()
    return suffix == ".json" or (suffix != ".toml" and text.lstrip()[:1] == "{")


def _json(text: str, source: str) -> dict[str, Any]:
    try:
        data = json.loads(text, parse_constant=_no_number, parse_float=_finite)
        json.dumps(data, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as exc:
        raise ArtifactError(f"{source} holds half a character: {exc.object[exc.start]!r}") from exc
    except (ValueError, RecursionError) as exc:
        raise ArtifactError(f"{source} is not valid JSON: {exc}") from exc
    if not isinstance(data, dict):
        raise ArtifactError(
            f"{source}: a plan is a JSON object", hint="write one with `cra plan TASK -o FILE`"
        )
    return data


def _validated(data: dict[str, Any], source: str) -> PlanArtifact | MetaPlan:
    kind = MetaPlan if "parts" in data else PlanArtifact
    try:
        plan = kind.model_validate(data)
    except ValidationError as exc:
        faults = [f"{'.'.join(map(str, error['loc'])) or 'plan'}: {error['msg']}" for error in exc.errors()]
        raise ArtifactError(f"{source}: " + "; ".join(faults), hint=HINT) from exc
    if isinstance(plan, MetaPlan):
        found = tuple(f"parts: {fault}" for fault in meta_plan_faults(plan, max_parts=len(plan.parts)))
    else:
        found = artifact_faults(plan)
    if found:
        raise ArtifactError(f"{source}: " + "; ".join(found), hint=HINT)
    return plan


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _no_number(digits)
