import pytest
from tests.db.raw.samples import sample

from clean_room_agent.db.raw.passes import ValidationRow
from clean_room_agent.report.validation import counts, outputs


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"timed_out": True}, "timed out"),
        ({"tests_passed": None}, "exit 1"),
        ({"tests_passed": 4}, "4 passed, 1 failed"),
    ],
)
def test_a_test_run_is_counted_in_a_few_words(changes: dict[str, object], said: str) -> None:
    assert counts(sample(ValidationRow, **changes)) == said


def test_what_a_runner_coloured_is_shown_without_its_colours() -> None:
    row = sample(
        ValidationRow, test_output="\x1b[31m1 failed\x1b[0m\n", lint_output=None, type_check_output=None
    )
    assert outputs(row) == [("output", "1 failed\n")]
