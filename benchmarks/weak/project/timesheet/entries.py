"""One line of a timesheet."""

import datetime as dt
from msgspec import Struct

from timesheet.durations import parse_duration

FIELDS = 4


class Entry(Struct, frozen=True):
    """Time spent on a project on a day."""

    day: dt.date
    project: str
    seconds: int
    note: str


def parse_entry(line: str) -> Entry:
    """The entry that a line such as `2026-03-02 garden 1h30m cut the hedge` holds.

    Raises:
        ValueError: the line is not an entry.
    """
    fields = line.split(maxsplit=FIELDS - 1)
    if len(fields) < FIELDS - 1:
        raise ValueError(f"an entry needs a day, a project and a duration: {line!r}")
    day, project, duration, *note = fields
    return Entry(
        day=dt.date.fromisoformat(day),
        project=project.lower(),
        seconds=parse_duration(duration),
        note=note[0].strip() if note else "",
    )


def parse_entries(text: str) -> list[Entry]:
    """The entries of a text; empty lines, and lines that begin with `#`, are passed over."""
    lines = (line.strip() for line in text.splitlines())
    return [parse_entry(line) for line in lines if line and not line.startswith("#")]
