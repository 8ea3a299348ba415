"""The current time in the record's format."""

import datetime as dt
import os
import time
from pathlib import Path

STARTED_AT = 19
"""Index of a field after the name in /proc/self/stat: clock ticks from boot to the start of the process."""


def utc_now() -> str:
    """The time as UTC, ISO 8601, with milliseconds."""
    return _format_timestamp(dt.datetime.now(dt.UTC))


def clock_in(seconds: float) -> str:
    """The local time in so many seconds, for people: `06:40`, with the day if that is not today."""
    now = dt.datetime.now().astimezone()
    then = now + dt.timedelta(seconds=seconds)
    return then.strftime("%H:%M" if then.date() == now.date() else "%A %H:%M")


def process_began() -> str:
    """When this process was started, in the same format; the current time if the system does not say."""
    now = dt.datetime.now(dt.UTC)
    try:
        stat = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _format_timestamp(now)
    ticks = int(stat.rpartition(")")[2].split()[STARTED_AT])
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return _format_timestamp(now - dt.timedelta(seconds=age))


def _format_timestamp(moment: dt.datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
