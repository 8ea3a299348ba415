"""Durations as people write them: `45m`, `1h30m`, `2h`."""

import re

_DURATION = re.compile(r"(?:(?P<hours>\d+)h)?(?:(?P<minutes>\d+)m)?")
SECONDS_PER_MINUTE = 60
SECONDS_PER_HOUR = 3600


def parse_duration(text: str) -> int:
    """The seconds that a text such as `1h30m` means.

    Raises:
        ValueError: the text is not a duration.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None or not text.strip():
        raise ValueError(f"not a duration: {text!r}")
    hours = int(found["hours"] or 0)
    minutes = int(found["minutes"] or 0)
    return hours * SECONDS_PER_HOUR + minutes * SECONDS_PER_MINUTE


def format_duration(seconds: int) -> str:
    """The shortest text that means so many seconds, in whole minutes."""
    hours, rest = divmod(seconds, SECONDS_PER_HOUR)
    minutes = rest // SECONDS_PER_MINUTE
    parts = [f"{hours}h"] if hours else []
    if minutes or not hours:
        parts.append(f"{minutes}m")
    return "".join(parts)
