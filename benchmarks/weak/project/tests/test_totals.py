import datetime as dt

from timesheet.entries import Entry
from timesheet.totals import busiest_day, by_project, of_week


def entry(day: int, project: str, seconds: int) -> Entry:
    return Entry(day=dt.date(2026, 3, day), project=project, seconds=seconds, note="")


def test_the_largest_project_comes_first() -> None:
    sums = by_project([entry(2, "garden", 60), entry(3, "house", 300), entry(4, "garden", 60)])
    assert list(sums.items()) == [("house", 300), ("garden", 120)]


def test_a_week_has_seven_days() -> None:
    entries = [entry(1, "a", 1), entry(2, "b", 1), entry(8, "c", 1), entry(9, "d", 1)]
    assert [one.project for one in of_week(entries, dt.date(2026, 3, 2))] == ["b", "c"]


def test_of_equally_busy_days_the_earliest_is_named() -> None:
    assert busiest_day([entry(5, "a", 60), entry(3, "b", 60)]) == dt.date(2026, 3, 3)
    assert busiest_day([]) is None
