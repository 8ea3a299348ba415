"""The words of events are in old records: one that changes makes them unreadable."""

import pytest

from clean_room_agent.artifacts.outcomes import (
    EventKind,
    RunStatus,
    reason_of,
    status_of,
)
from clean_room_agent.errors import BudgetSpent, GitError, Interrupted, ServerBusy


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (KeyboardInterrupt(), RunStatus.INTERRUPTED, "interrupted"),
        (Interrupted("stopped by the user"), RunStatus.INTERRUPTED, "stopped by the user"),
        (BudgetSpent("40 of 40 calls"), RunStatus.PARTIAL, "40 of 40 calls"),
        (ServerBusy("its queue is full"), RunStatus.FAILED, "its queue is full"),
        (GitError("no such ref"), RunStatus.FAILED, "no such ref"),
        (ZeroDivisionError("division by zero"), RunStatus.FAILED, "ZeroDivisionError: division by zero"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_an_error_ends_a_run_with_a_status_and_a_reason(
    error: BaseException, status: RunStatus, reason: str
) -> None:
    assert (status_of(error), reason_of(error)) == (status, reason)


def test_an_event_is_known_again_by_the_word_in_the_record() -> None:
    assert EventKind("taken_back") is EventKind.TAKEN_BACK
    assert f"{EventKind.RESUMED}" == "resumed"
