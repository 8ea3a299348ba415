"""The runs of a repository with their current status and disk usage."""

from typing import Any

from msgspec.structs import replace

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.db.raw.pruning import file_bytes, record_bytes
from clean_room_agent.db.raw.runs import RunOverview
from clean_room_agent.db.rows import Connection
from clean_room_agent.json_values import to_shown
from clean_room_agent.workspace import Workspace, is_held


def status_now(workspace: Workspace, task_id: str, recorded: RunStatus) -> RunStatus:
    """The status of a run: interrupted if it is recorded as running and no process holds it."""
    if recorded is RunStatus.RUNNING and not is_held(workspace.task_lock(task_id)):
        return RunStatus.INTERRUPTED
    return recorded


def as_it_stands(workspace: Workspace, entry: RunOverview) -> RunOverview:
    """The run with its current status."""
    listing = entry.listing
    return replace(
        entry, listing=replace(listing, status=status_now(workspace, listing.task_id, listing.status))
    )


def run_bytes(conn: Connection, workspace: Workspace, task_id: str) -> int:
    """Bytes that the run takes in the record and in its other files."""
    beside = (workspace.session(task_id), workspace.run_copy(task_id))
    return record_bytes(conn, task_id) + sum(map(file_bytes, beside))


def as_object(entry: RunOverview) -> dict[str, Any]:
    """One run as `--json` answers it."""
    run, tests = entry.run, entry.tests
    return {
        **to_shown(entry.listing),
        "reason": "" if run is None else run.reason,
        "branch": "" if run is None else run.branch,
        "result_commit": "" if run is None else run.result_commit,
        "tests": to_shown(tests),
        "bytes": entry.size,
    }
