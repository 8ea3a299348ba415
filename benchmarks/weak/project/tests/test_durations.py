import pytest

from timesheet.durations import format_duration, parse_duration


@pytest.mark.parametrize(("text", "seconds"), [("45m", 2700), ("2h", 7200), ("1h30m", 5400), (" 5m ", 300)])
def test_a_duration_is_read(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "30", "m"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(("seconds", "text"), [(0, "0m"), (2700, "45m"), (7200, "2h"), (5400, "1h30m")])
def test_a_duration_is_written(seconds: int, text: str) -> None:
    assert format_duration(seconds) == text
