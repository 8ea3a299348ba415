from typing import Any

import pytest
from testing.client.model_client import NOW

from clean_room_agent.app.replay import require_same
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


def test_a_replay_with_the_same_result_is_the_same() -> None:
    same: Any = Summary("the diff", RunStatus.PARTIAL)
    require_same(row(RunStatus.PARTIAL), "the diff", same)


@pytest.mark.parametrize(
    ("diff", "status"), [("another", RunStatus.PARTIAL), ("the diff", RunStatus.COMPLETE)]
)
def test_a_replay_with_another_result_says_where_to_look(diff: str, status: RunStatus) -> None:
    other: Any = Summary(diff, status)
    with pytest.raises(ReplayMismatch, match=f"ended {status.value} with another result") as caught:
        require_same(row(RunStatus.PARTIAL), "the diff", other)
    assert "cra show aaaaaaaa --tests" in caught.value.hint
