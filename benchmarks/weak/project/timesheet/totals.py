"""Sums over entries."""

import datetime as dt
from collections import Counter
from collections.abc import Iterable

from timesheet.entries import Entry

DAYS_PER_WEEK = 7


def by_project(entries: Iterable[Entry]) -> dict[str, int]:
    """Project -> its seconds, the largest first."""
    sums: Counter[str] = Counter()
    for entry in entries:
        sums[entry.project] += entry.seconds
    return dict(sums.most_common())


def of_week(entries: Iterable[Entry], monday: dt.date) -> list[Entry]:
    """The entries of the seven days that begin with `monday`."""
    end = monday + dt.timedelta(days=DAYS_PER_WEEK)
    return [entry for entry in entries if monday <= entry.day < end]


def busiest_day(entries: Iterable[Entry]) -> dt.date | None:
    """The day with the most seconds, the earliest of several; None without entries."""
    sums: Counter[dt.date] = Counter()
    for entry in entries:
        sums[entry.day] += entry.seconds
    return min(sums, key=lambda day: (-sums[day], day), default=None)
