"""A failed attempt as the recovery table sees it."""

from collections.abc import Sequence
from dataclasses import replace

from clean_room_agent.artifacts.edits import EditCode
from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.artifacts.tasks import RefinementRequest
from clean_room_agent.artifacts.verdicts import FailureSignal
from clean_room_agent.execute.failure_signals import failure_signals
from clean_room_agent.execute.implement import text_fingerprint
from clean_room_agent.orchestrator.failure_kinds import Category, category_of
from clean_room_agent.orchestrator.recovery.error_similarity import MOST_COMPARED, normalised
from clean_room_agent.orchestrator.recovery.rules import Action
from clean_room_agent.orchestrator.recovery.situation import AttemptSeen
from clean_room_agent.orchestrator.steps.attempt import Tried
from clean_room_agent.orchestrator.testing.evidence import evidence_of

NOT_RUN = "the test passed before, and does not run now"


def attempt_seen(
    tried: Tried, action: Action, missing: RefinementRequest | None, *, candidates: int = 1
) -> AttemptSeen:
    """The attempt that `action` led to, the best of so many candidates; `missing` is what it shows to be missing and was
    not asked for before.
    """
    failing = _telling(tried)
    messages = [test.message for test in failing]
    reports = tried.result.reports if tried.result else ()
    return AttemptSeen(
        outcome=tried.judged(),
        fingerprint=tried.fingerprint,
        missing=missing,
        category=_category(tried, messages),
        message=("\n".join(messages) or tried.detail)[:MOST_COMPARED],
        tree=text_fingerprint(tried.diff),
        red=tuple(sorted(f"{test.name}: {normalised(test.message)}" for test in failing)),
        already_applied=any(report.code is EditCode.ALREADY_APPLIED for report in reports),
        drawn=replace(action.drawn(), varied=action.vary or candidates > 1),
        refined=action.kind == "refine",
        candidates=candidates,
    )


def signals_of(tried: Tried) -> tuple[FailureSignal, ...]:
    """What went wrong in an attempt that was not accepted, for whoever revises the steps that remain."""
    if tried.tests is None or tried.verdict is None:
        return failure_signals(tried.outcome, tried.detail)
    failing = {test.name: test for test in reversed(tried.tests.failing)}
    newly = [
        failing.get(name) or FailingTest(name=name, message=NOT_RUN) for name in tried.verdict.newly_failing
    ]
    messages = evidence_of(tried.tests).messages if not tried.tests.failing else ()
    return failure_signals(tried.judged(), tried.detail, newly_failing=newly, messages=messages)


def _category(tried: Tried, messages: Sequence[str]) -> Category:
    if tried.answer.endless:
        return "endless"
    placed = tried.result is not None and tried.result.success
    if tried.outcome is AttemptOutcome.REFUSED and tried.untouched and placed:
        return "untouched"
    return category_of(tried.judged(), messages, tested=tried.tests is not None)


def _telling(tried: Tried) -> Sequence[FailingTest]:
    """The tests that fail newly; where none does, all that fail."""
    if tried.tests is None:
        return ()
    newly = frozenset(tried.verdict.newly_failing) if tried.verdict else frozenset()
    return [test for test in tried.tests.failing if test.name in newly] or tried.tests.failing
