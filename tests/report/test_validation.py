import pytest
from tests.db.raw.samples import sample

from clean_room_agent.db.raw.passes import ValidationRow
from clean_room_agent.report.validation import counts


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
