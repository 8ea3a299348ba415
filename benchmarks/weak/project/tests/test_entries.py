import datetime as dt

import pytest

from timesheet.entries import Entry, parse_entries, parse_entry


def test_an_entry_is_read() -> None:
    assert parse_entry("2026-03-02 Garden 1h30m cut the hedge") == Entry(
        day=dt.date(2026, 3, 2), project="garden", seconds=5400, note="cut the hedge"
    )


def test_a_note_may_be_missing() -> None:
    assert parse_entry("2026-03-02 garden 5m").note == ""


def test_a_line_without_a_duration_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a day"):
        parse_entry("2026-03-02 garden")


def test_comments_and_empty_lines_are_passed_over() -> None:
    entries = parse_entries("# March\n\n2026-03-02 garden 5m\n  # more\n2026-03-03 house 10m\n")
    assert [entry.project for entry in entries] == ["garden", "house"]
