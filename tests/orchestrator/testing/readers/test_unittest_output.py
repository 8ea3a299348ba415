import pytest

from clean_room_agent.orchestrator.testing.readers.unittest_output import read_unittest

OUTPUT = "test_a (t.Box.test_a) ... skipped {}\n\n" + "-" * 70 + "\nRan 1 test in 0.001s\n\nOK (skipped=1)\n"


@pytest.mark.parametrize("reason", ["'no'", '"it\'s"', "", "é"])
def test_a_skipped_test_is_one_however_its_reason_is_quoted(reason: str) -> None:
    reading = read_unittest(OUTPUT.format(reason))
    assert reading is not None
    assert set(reading.report.outcomes.values()) <= {"skipped"}
    assert not reason or reading.report.outcomes == {"t.Box.test_a": "skipped"}
