"""How an error ends a run."""

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.errors import BudgetSpent, CraError, Interrupted


def status_of(error: BaseException) -> RunStatus:
    """How a run stands that the error ended."""
    if isinstance(error, KeyboardInterrupt | Interrupted):
        return RunStatus.INTERRUPTED
    return RunStatus.PARTIAL if isinstance(error, BudgetSpent) else RunStatus.FAILED


def reason_of(error: BaseException) -> str:
    """Why it did, in words."""
    if isinstance(error, CraError):
        return error.message
    return "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
