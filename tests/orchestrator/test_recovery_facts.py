import pytest

from clean_room_agent.artifacts.outcomes import AttemptOutcome, Drawn
from clean_room_agent.orchestrator.recovery_facts import AttemptSeen, StepSeen, likeness, normalised

FAILED = AttemptSeen(outcome=AttemptOutcome.TESTS_FAILED, fingerprint="x")
CUT = AttemptSeen(outcome=AttemptOutcome.TRUNCATED, fingerprint="x")
STRONGER = AttemptSeen(outcome=AttemptOutcome.TESTS_FAILED, fingerprint="x", drawn=Drawn(model="coder:32b"))
REDRAWN = AttemptSeen(outcome=AttemptOutcome.TESTS_FAILED, fingerprint="x", drawn=Drawn(unchanged=True))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("NameError: name 'share' is not defined", "NameError: name <value> is not defined"),
        ('expected "a \\"b\\"" here', "expected <value> here"),
        ("it doesn't fit, and can't", "it doesn't fit, and can't"),
        ('File "till/money.py", line 7, in split', "File <value>, <line>, in split"),
        ("till/money.py:12:3: error", "<path><line>: error"),
        ("<Share object at 0x7f3a12> differs", "<Share object at <address>> differs"),
        ("began 2026-01-02T10:11:12.5 and took 3.25 s", "began <time> and took <time>"),
        ("AssertionError: 99 != 100", "AssertionError: 99 != 100"),
        ("  many\n\twords ", "many words"),
    ],
)
def test_what_differs_from_run_to_run_becomes_a_placeholder(message: str, expected: str) -> None:
    assert normalised(message) == expected


def test_messages_are_alike_whatever_they_quote() -> None:
    first = "ImportError: cannot import name 'split' from 'till.money' (/tmp/one/till/money.py)"
    other = "ImportError: cannot import name 'negate' from 'till.receipt' (/tmp/two/till/receipt.py)"
    assert likeness(first, other) == 1.0
    assert likeness(first, "AssertionError: Lists differ: [7, 1, 1] != [3, 3, 3]") < 0.5
    assert likeness("AssertionError: 99 != 100 in total", "AssertionError: 98 != 100 in total") > 0.9


def left(*attempts: AttemptSeen) -> int:
    return StepSeen(attempts=attempts, max_attempts=3).attempts_left


def test_attempts_of_a_stronger_model_do_not_count_as_the_coders() -> None:
    assert (left(FAILED), left(FAILED, STRONGER)) == (2, 2)


def test_a_round_of_answers_from_the_unchanged_prompt_counts_as_one_attempt() -> None:
    assert (left(FAILED, REDRAWN), left(FAILED, REDRAWN, REDRAWN)) == (1, 1)


def test_after_an_answer_that_was_cut_off_later_ones_get_more_of_the_window() -> None:
    assert StepSeen(attempts=(CUT, FAILED), max_attempts=3).more_room
    assert not StepSeen(attempts=(FAILED,), max_attempts=3).more_room
