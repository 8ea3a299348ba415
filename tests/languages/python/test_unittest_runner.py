import pytest

from clean_room_agent.languages.python.unittest_runner import UnittestRunner, read_unittest

OUTPUT = "test_a (t.Box.test_a) ... skipped {}\n\n" + "-" * 70 + "\nRan 1 test in 0.001s\n\nOK (skipped=1)\n"


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("python -m unittest", "python -m unittest -v"),
        ("python3 -m unittest discover -s t", "python3 -m unittest discover -v -s t"),
        ("python3 -m unittest discover", "python3 -m unittest discover -v"),
        ("python3 -m unittest discovery", "python3 -m unittest -v discovery"),
        ("python -m unittest -v", "python -m unittest -v"),
        ("python -m unittest -q a", "python -m unittest -q a"),
        ("python -m unittest a && python -m unittest b", "python -m unittest a && python -m unittest b"),
        ("pytest", "pytest"),
    ],
)
def test_unittest_is_asked_for_names(command: str, asked: str) -> None:
    assert UnittestRunner().asked(command) == asked


@pytest.mark.parametrize("reason", ["'no'", '"it\'s"', "", "é"])
def test_a_skipped_test_is_one_however_its_reason_is_quoted(reason: str) -> None:
    reading = read_unittest(OUTPUT.format(reason))
    assert reading is not None
    assert set(reading.report.outcomes.values()) <= {"skipped"}
    assert not reason or reading.report.outcomes == {"t.Box.test_a": "skipped"}
