"""Totals as a table of text."""

from collections.abc import Mapping

from timesheet.durations import format_duration

GAP = "  "


def render_table(sums: Mapping[str, int]) -> str:
    """A line a project and a line for all of them, in columns."""
    rows = [(project, format_duration(seconds)) for project, seconds in sums.items()]
    rows.append(("total", format_duration(sum(sums.values()))))
    width = max(len(project) for project, _ in rows)
    return "\n".join(f"{project.ljust(width)}{GAP}{duration}" for project, duration in rows)
