"""What `cra replay` answers."""

from typing import Any

from clean_room_agent.db.raw.orchestrator_runs import OrchestratorRunRow
from clean_room_agent.errors import ReplayMismatch


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
