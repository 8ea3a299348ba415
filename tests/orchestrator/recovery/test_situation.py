from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.orchestrator.recovery.situation import AttemptSeen, Drawn, StepSeen

FAILED = AttemptSeen(outcome=AttemptOutcome.TESTS_FAILED, fingerprint="x")
CUT = AttemptSeen(outcome=AttemptOutcome.TRUNCATED, fingerprint="x")
STRONGER = AttemptSeen(outcome=AttemptOutcome.TESTS_FAILED, fingerprint="x", drawn=Drawn(model="coder:32b"))
REDRAWN = AttemptSeen(outcome=AttemptOutcome.TESTS_FAILED, fingerprint="x", drawn=Drawn(unchanged=True))


def left(*attempts: AttemptSeen) -> int:
    return StepSeen(attempts=attempts, max_attempts=3).attempts_left


def test_attempts_of_a_stronger_model_do_not_count_as_the_coders() -> None:
    assert (left(FAILED), left(FAILED, STRONGER)) == (2, 2)


def test_a_round_of_answers_from_the_unchanged_prompt_counts_as_one_attempt() -> None:
    assert (left(FAILED, REDRAWN), left(FAILED, REDRAWN, REDRAWN)) == (1, 1)


def test_after_an_answer_that_was_cut_off_later_ones_get_more_of_the_window() -> None:
    assert StepSeen(attempts=(CUT, FAILED), max_attempts=3).more_room
    assert not StepSeen(attempts=(FAILED,), max_attempts=3).more_room
