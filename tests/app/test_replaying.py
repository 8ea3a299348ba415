from typing import Any

import pytest
from testing.client.model_client import NOW

from clean_room_agent.app.replaying import require_same
from clean_room_agent.artifacts.outcomes import OrchestratorResult, RunStatus
from clean_room_agent.db.raw.runs import OrchestratorRunRow
from clean_room_agent.errors import ReplayMismatch


def row(status: RunStatus) -> OrchestratorRunRow:
    return OrchestratorRunRow(
        task_id="a" * 36,
        repo_path="/memory",
        task_description="x",
        timestamp=NOW,
        command="solve",
        config="{}",
        program_version="0",
        base_commit="0" * 40,
        status=status,
    )


class Summary:
    """What is compared of a replay's summary."""

    def __init__(self, diff: str, status: RunStatus) -> None:
        self.result = OrchestratorResult(task_id="b" * 36, status=status, cumulative_diff=diff)


def mismatch(diff: str, status: RunStatus) -> ReplayMismatch | None:
    """What is said of a replay that ended so, of a run that ended partial with "the diff"."""
    summary: Any = Summary(diff, status)
    try:
        require_same(row(RunStatus.PARTIAL), "the diff", summary)
    except ReplayMismatch as found:
        return found
    return None


def test_a_replay_with_the_same_result_is_the_same() -> None:
    assert mismatch("the diff", RunStatus.PARTIAL) is None


@pytest.mark.parametrize(
    ("diff", "status"), [("another", RunStatus.PARTIAL), ("the diff", RunStatus.COMPLETE)]
)
def test_a_replay_with_another_result_says_where_to_look(diff: str, status: RunStatus) -> None:
    found = mismatch(diff, status)
    assert found is not None
    assert f"ended {status.value} with a different result" in str(found)
    assert "cra show aaaaaaaa --tests" in found.hint
