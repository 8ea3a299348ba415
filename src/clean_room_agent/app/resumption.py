"""Checks which runs can be resumed, with which flags and hints, and what is configured differently now."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from clean_room_agent.app.settings import TABLES, Overrides
from clean_room_agent.artifacts.goals import NOTHING_GIVEN, GivenEvidence
from clean_room_agent.artifacts.names import relative_pass, short_id
from clean_room_agent.artifacts.outcomes import WHOLE, EventKind, RunStatus
from clean_room_agent.artifacts.plans import MetaPlan, PartPlan
from clean_room_agent.config import keys_of
from clean_room_agent.db.raw.runs import OrchestratorRunRow, get_orchestrator_run, list_events
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import ConfigError, UsageError
from clean_room_agent.json_values import from_json
from clean_room_agent.orchestrator.task import Hint, PlanGiven

JUDGES = (("testing", "test_command"), ("testing", "step_test_command"))
"""The commands by which the finished part of a run was judged; with other commands, its results would mean nothing."""


def resumable(conn: Connection, task_id: str) -> OrchestratorRunRow:
    """The run, if it can be resumed.

    Raises:
        UsageError: it is complete, or cannot be resumed.
    """
    run = get_orchestrator_run(conn, task_id)
    short = short_id(task_id)
    if run is None or run.command != "solve":
        raise UsageError(
            f"{short} is not a run of `cra solve`", hint="`cra runs` lists the runs of this repository"
        )
    if run.status in WHOLE:
        hint = "; to have it shown, start again with: cra solve --check 'assert …'"
        raise UsageError(
            f"run {short} is {run.status}: there is nothing to resume",
            hint=f"look at it: cra show {short}{hint if run.status is RunStatus.UNPROVEN else ''}",
        )
    for event in list_events(conn, task_id):
        if event.kind in {EventKind.DISCARDED, EventKind.PRUNED}:
            raise UsageError(f"run {short} was {event.kind}", hint="start again: cra solve")
    return run


def given_to(conn: Connection, task_id: str) -> PlanGiven:
    """What the user had given the run: plans, evidence and hints."""
    events = list_events(conn, task_id)
    kept = {event.kind: event.detail for event in events}
    single, meta = kept.get(EventKind.PLAN_GIVEN), kept.get(EventKind.META_PLAN_GIVEN)
    evidence = kept.get(EventKind.EVIDENCE_GIVEN)
    since = {
        event.detail: relative_pass(event.task_id)
        for event in reversed(events)
        if event.kind == EventKind.HINT_SHOWN
    }
    return PlanGiven(
        single=PartPlan.model_validate_json(single) if single else None,
        meta_plan=MetaPlan.model_validate_json(meta) if meta else None,
        evidence=from_json(evidence, GivenEvidence) if evidence else NOTHING_GIVEN,
        hints=tuple(
            Hint(text=event.detail, since=since.get(event.detail, ""))
            for event in events
            if event.kind == EventKind.HINT
        ),
    )


def with_earlier_flags(conn: Connection, task_id: str, overrides: Overrides) -> Overrides:
    """The present flags over those with which the run was started or resumed."""
    values: dict[str, Any] = {}
    for event in list_events(conn, task_id):
        if event.kind == EventKind.FLAGS:
            values |= json.loads(event.detail)
    values |= {key: value for key, value in structs.asdict(overrides).items() if value is not None}
    if isinstance(values.get("budget_config"), str):
        values["budget_config"] = Path(values["budget_config"])
    return Overrides(**values)


def recorded_config(conn: Connection, run: OrchestratorRunRow) -> Mapping[str, Any]:
    """The configuration that the run had when it was last started."""
    resumed = [
        event.detail for event in list_events(conn, run.task_id) if event.kind == EventKind.RESUMED_WITH
    ]
    config: Mapping[str, Any] = json.loads(resumed[-1])["config"] if resumed else json.loads(run.config)
    return config


def changes_since(then: Mapping[str, Any], now: Mapping[str, Any], *, source: str) -> tuple[str, ...]:
    """What is configured differently now, one line each.

    Raises:
        ConfigError: the finished part was judged by another command.
    """
    before, after = _flatten_config(then), _flatten_config(json.loads(json.dumps(now, default=str)))
    changed = tuple(key for key in sorted({*before, *after}) if before.get(key) != after.get(key))
    for key in JUDGES:
        if key in changed:
            raise ConfigError(
                f"{source}: [{key[0]}] {key[1]} was {before.get(key)!r} when the run began and is {after.get(key)!r} now: "
                "what is done was judged by the old value",
                hint="restore it to continue, or start again: cra solve",
            )
    return tuple(
        f"[{table}] {key}: was {before.get((table, key))!r}, is {after.get((table, key))!r}"
        for table, key in changed
    )


def _flatten_config(config: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """The values by table and key, with the defaults of those that are not set."""
    defaults = {
        (table, key.name): json.loads(json.dumps(key.default, default=str))
        for table, kind in TABLES.items()
        for key in keys_of(kind).values()
        if key.table is None
    }
    return defaults | {
        (table, key): value
        for table, values in config.items()
        for key, value in (values.items() if isinstance(values, dict) else [("", values)])
    }
