"""A run for somebody who may not see the repository: what happened, and when, in numbers and in words that the program
chose. Only the fields that are named here are told: a text that a user, a model, a test or a server wrote is not among them.
"""

from collections.abc import Mapping
from typing import Any

from clean_room_agent.artifacts.edits import EditReport
from clean_room_agent.artifacts.model_calls import CallSummary
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.db.raw.passes import AttemptRow, ValidationRow
from clean_room_agent.report.trace import PassTrace, RunTrace

KINDS = frozenset(EventKind)


def run_facts(trace: RunTrace) -> dict[str, Any]:
    """The run's status, its passes with their attempts, and each of its test runs."""
    run, places = trace.run, _places(trace)
    return {
        "task_id": trace.task_id,
        "command": "" if run is None else run.command,
        "status": "" if run is None else run.status.value,
        "reason_characters": 0 if run is None else len(run.reason),
        "program_version": "" if run is None else run.program_version,
        "began": "" if run is None else run.timestamp,
        "ended": None if run is None else run.completed_at,
        "parts": None if run is None else [run.parts_completed, run.total_parts],
        "steps": None if run is None else [run.steps_completed, run.total_steps],
        "task_characters": 0 if run is None else len(run.task_description),
        "passes": [_pass(entry, places) for entry in trace.passes],
        "tests": [_tests(row, places) for row in trace.tests],
    }


def event_facts(trace: RunTrace) -> list[dict[str, Any]]:
    """The run's events in order; of their texts, the length."""
    places = _places(trace)
    return [
        {
            "at": event.timestamp,
            "of": places.get(event.task_id, ""),
            "kind": event.kind if event.kind in KINDS else "",
            "detail_characters": len(event.detail),
        }
        for event in trace.events
    ]


def call_facts(trace: RunTrace) -> list[dict[str, Any]]:
    """Each call without its texts, in order."""
    places = _places(trace)
    return [_call(places[entry.pass_id], call) for entry in trace.passes for call in entry.calls]


def run_texts(trace: RunTrace) -> dict[str, Any]:
    """What the facts leave out: reasons, details and errors, which hold the user's words, names, code and test output."""
    places = _places(trace)
    return {
        "reason": "" if trace.run is None else trace.run.reason,
        "passes": {
            places[entry.pass_id]: {
                "place": entry.place,
                "detail": entry.row.detail,
                "recoveries": [[each.state, each.detail] for each in entry.recoveries],
                "attempts": [row.error for row in entry.attempts],
            }
            for entry in trace.passes
        },
        "tests": [{"of": places.get(row.task_id, ""), "command": row.command} for row in trace.tests],
        "events": [[event.timestamp, event.kind, event.detail] for event in trace.events],
        "calls": {
            call.id: [call.ending.error, call.read.fault if call.read else ""]
            for entry in trace.passes
            for call in entry.calls
        },
    }


def _places(trace: RunTrace) -> dict[str, str]:
    """What each pass is called here, by its id, in which models or the user named the parts and steps."""
    numbered = {entry.pass_id: f"pass {number}" for number, entry in enumerate(trace.passes, start=1)}
    return {trace.task_id: "task", **numbered}


def _pass(entry: PassTrace, places: Mapping[str, str]) -> dict[str, Any]:
    row = entry.row
    return {
        "place": places[entry.pass_id],
        "type": None if entry.order is None else entry.order.pass_type.value,
        "mode": row.mode,
        "model": row.execute_model,
        "context_window": row.context_window,
        "reserved_tokens": row.reserved_tokens,
        "stages": row.stages,
        "success": row.success,
        "detail_characters": len(row.detail),
        "began": row.timestamp,
        "ended": row.completed_at,
        "calls": len(entry.calls),
        "candidates": len(entry.decisions),
        "shown": sum(decision.included for decision in entry.decisions),
        "refinements": len(entry.refinements),
        "recoveries": [{"rule": each.rule, "action": each.action} for each in entry.recoveries],
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


def _tests(row: ValidationRow, places: Mapping[str, str]) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "of": places.get(row.task_id, ""),
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
        "error_characters": len(call.ending.error),
        "reading": call.read.reading if call.read else None,
        "fault_characters": len(call.read.fault) if call.read else 0,
        "at": call.cost.timestamp,
    }
