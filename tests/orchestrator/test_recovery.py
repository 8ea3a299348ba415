import pytest

from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.artifacts.tasks import RefinementRequest
from clean_room_agent.orchestrator.recovery import AttemptSeen, Limits, decide, is_repeat

MISSING = RefinementRequest(reason="r", missing_files=("a.py",))


def seen(
    outcome: AttemptOutcome, fingerprint: str = "", missing: RefinementRequest | None = None
) -> AttemptSeen:
    return AttemptSeen(outcome=outcome, fingerprint=fingerprint, missing=missing)


LACKING = seen(AttemptOutcome.INSUFFICIENT_CONTEXT, "x", MISSING)
FAILED = seen(AttemptOutcome.TESTS_FAILED, "x")
CUT = seen(AttemptOutcome.TRUNCATED)


@pytest.mark.parametrize(
    ("attempts", "limits", "kind"),
    [
        ([LACKING], Limits(attempts_left=2, refinements_left=1), "refine"),
        ([LACKING], Limits(attempts_left=2, refinements_left=0), "retry"),
        ([LACKING], Limits(attempts_left=0, refinements_left=1), "skip"),
        ([seen(AttemptOutcome.INSUFFICIENT_CONTEXT)], Limits(attempts_left=1, refinements_left=1), "retry"),
        ([FAILED], Limits(attempts_left=1, refinements_left=1), "retry"),
        ([FAILED], Limits(attempts_left=0, refinements_left=1), "skip"),
        ([FAILED], Limits(attempts_left=1, refinements_left=1, budget_spent="9 calls"), "stop"),
    ],
)
def test_the_first_rule_that_matches_decides(attempts: list[AttemptSeen], limits: Limits, kind: str) -> None:
    assert decide(attempts, limits).kind == kind


def test_an_answer_given_before_is_drawn_differently() -> None:
    action = decide([FAILED, FAILED], Limits(attempts_left=1, refinements_left=0))
    assert action.vary
    assert not decide([FAILED], Limits(attempts_left=1, refinements_left=0)).vary


def test_after_an_answer_was_cut_off_all_later_ones_get_more_room() -> None:
    limits = Limits(attempts_left=1, refinements_left=0)
    assert decide([CUT], limits).more_room
    assert decide([CUT, FAILED], limits).more_room
    assert not decide([FAILED], limits).more_room
    refined = decide([CUT, LACKING], Limits(attempts_left=1, refinements_left=1))
    assert (refined.kind, refined.more_room) == ("refine", True)


def test_answers_without_text_are_not_repeats() -> None:
    assert not is_repeat([CUT, CUT])
