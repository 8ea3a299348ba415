"""What `cra replay` answers."""

from typing import Any

from clean_room_agent.artifacts.ids import short_id
from clean_room_agent.cli import output
from clean_room_agent.db.raw.orchestrator_runs import OrchestratorRunRow
from clean_room_agent.errors import ReplayMismatch
from clean_room_agent.report.summary import RunSummary


def mismatch_object(row: OrchestratorRunRow, mismatch: ReplayMismatch) -> dict[str, Any]:
    """Where the replay differs, as `--json` answers it."""
    difference = {
        "message": mismatch.message,
        "call": mismatch.call,
        "part": mismatch.part,
        "line": mismatch.line,
        "recorded": mismatch.recorded,
        "now": mismatch.now,
    }
    return {"replay_of": row.task_id, "same": False, "difference": difference}


def tell_same(row: OrchestratorRunRow, summary: RunSummary, diff: str, *, as_json: bool) -> None:
    """That it came out the same."""
    result = summary.result
    if as_json:
        answer = {"task_id": result.task_id, "replay_of": row.task_id, "same": True, "calls": summary.calls}
        output.answer_json(answer)
        return
    output.answer(
        f"the same: {summary.calls} calls answered from the record, {result.status.value}, "
        f"{len(diff.encode())} bytes of diff"
    )


def tell_from(row: OrchestratorRunRow, name: str, summary: RunSummary, before: str, *, as_json: bool) -> None:
    """What came of the run from the pass `name` on, beside what came of it then."""
    result = summary.result
    same = result.cumulative_diff == before
    if as_json:
        output.answer_json(
            {
                "task_id": result.task_id,
                "replay_of": row.task_id,
                "from": name,
                "status": {"then": row.status.value, "now": result.status.value},
                "same_diff": same,
                "calls": summary.calls,
                "diff": {"then": before, "now": result.cumulative_diff},
            }
        )
        return
    output.answer(
        f"from {name} on with the configured models: {result.status.value} (then: {row.status.value}), "
        f"{'the same diff' if same else 'another diff'}\nlook into it: cra show {short_id(result.task_id)} --diff"
    )
