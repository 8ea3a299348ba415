"""The current time in the record's format."""

import datetime as dt


def utc_now() -> str:
    """The time as UTC, ISO 8601, with milliseconds."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
