"""A run without any code, for somebody who may not see the repository: what happened, and when."""

from typing import Any

from clean_room_agent.artifacts.edits import EditReport
from clean_room_agent.artifacts.model_calls import CallSummary
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.db.raw.passes import AttemptRow, ValidationRow
from clean_room_agent.db.raw.runs import EventRow
from clean_room_agent.report.trace import PassTrace, RunTrace

USERS_WORDS = frozenset({EventKind.HINT, EventKind.HINT_SHOWN})
"""Kinds of events whose detail the user wrote."""


def run_facts(trace: RunTrace) -> dict[str, Any]:
    """The run's status, its passes with their attempts, and each of its test runs."""
    run = trace.run
    return {
        "task_id": trace.task_id,
        "command": "" if run is None else run.command,
        "status": "" if run is None else run.status.value,
        "reason": "" if run is None else run.reason,
        "program_version": "" if run is None else run.program_version,
        "began": "" if run is None else run.timestamp,
        "ended": None if run is None else run.completed_at,
        "parts": None if run is None else [run.parts_completed, run.total_parts],
        "steps": None if run is None else [run.steps_completed, run.total_steps],
        "task_characters": 0 if run is None else len(run.task_description),
        "passes": [_pass(entry) for entry in trace.passes],
        "tests": [_tests(row) for row in trace.tests],
    }


def event_facts(trace: RunTrace) -> list[dict[str, Any]]:
    """The run's events in order; of text by the user, only the length."""
    return [_event(event) for event in trace.events]


def call_facts(trace: RunTrace) -> list[dict[str, Any]]:
    """Each call without its texts, in order."""
    return [_call(entry.place, call) for entry in trace.passes for call in entry.calls]


def _pass(entry: PassTrace) -> dict[str, Any]:
    row = entry.row
    return {
        "place": entry.place,
        "mode": row.mode,
        "model": row.execute_model,
        "context_window": row.context_window,
        "reserved_tokens": row.reserved_tokens,
        "stages": row.stages,
        "success": row.success,
        "detail": row.detail,
        "began": row.timestamp,
        "ended": row.completed_at,
        "calls": len(entry.calls),
        "candidates": len(entry.decisions),
        "shown": sum(decision.included for decision in entry.decisions),
        "refinements": len(entry.refinements),
        "recoveries": [
            {"rule": each.rule, "action": each.action, "state": each.state} for each in entry.recoveries
        ],
        "attempts": [_attempt(each) for each in entry.attempts],
    }


def _attempt(row: AttemptRow) -> dict[str, Any]:
    return {
        "attempt": row.attempt,
        "outcome": row.outcome.value,
        "tokens": [row.prompt_tokens, row.completion_tokens],
        "latency_ms": row.latency_ms,
        "changed_lines": sum(
            line[:1] in {"+", "-"} and line[:3] not in {"+++", "---"} for line in row.diff.split("\n")
        ),
        "edits": [_edit(report) for report in row.edit_report],
    }


def _edit(report: EditReport) -> dict[str, Any]:
    return {"kind": report.kind, "code": report.code, "tier": report.tier, "matches": report.matches}


def _tests(row: ValidationRow) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "command": row.command,
        "success": row.success,
        "exit_code": row.exit_code,
        "timed_out": row.timed_out,
        "tests_run": row.tests_run,
        "tests_passed": row.tests_passed,
        "failing": len(row.failing_tests),
        "newly_failing": len(row.newly_failing),
        "duration_ms": row.duration_ms,
        "output_characters": len(row.test_output),
    }


def _event(event: EventRow) -> dict[str, Any]:
    detail = f"({len(event.detail)} characters)" if event.kind in USERS_WORDS else event.detail
    return {"at": event.timestamp, "of": event.task_id, "kind": event.kind, "detail": detail}


def _call(place: str, call: CallSummary) -> dict[str, Any]:
    return {
        "id": call.id,
        "place": place,
        "prompt": call.site.call_type,
        "stage": call.site.stage_name,
        "model": call.model.tag,
        "provider": call.model.provider,
        "attempt": call.site.attempt,
        "window": call.limits.window,
        "answer_limit": call.limits.answer,
        "estimated_tokens": call.cost.estimated_tokens,
        "prompt_tokens": call.cost.prompt_tokens,
        "completion_tokens": call.cost.completion_tokens,
        "latency_ms": call.cost.latency_ms,
        "finish": call.ending.finish,
        "error": call.ending.error,
        "reading": call.read.reading if call.read else None,
        "fault": call.read.fault if call.read else "",
        "at": call.cost.timestamp,
    }
