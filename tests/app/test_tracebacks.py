"""Tracebacks in two halves: the places, and what was said."""

import msgspec
import pytest

from clean_room_agent.app.tracebacks import HEADING, MESSAGES, log_text, places_in
from clean_room_agent.artifacts.outcomes import EventKind


def caught() -> Exception:
    """Errors in this program, in Python and here, one caused by the other, in a group; each says a secret word."""
    with pytest.raises(ExceptionGroup) as info:  # noqa: PT012 - two errors, one within the other
        try:
            EventKind("secret word")
        except ValueError as first:
            raise ExceptionGroup("secret word", [first, msgspec.DecodeError("secret word")]) from first
    return info.value


def test_places_hold_classes_and_frames_and_nothing_that_was_said() -> None:
    log = log_text(caught())
    assert log.count("secret word") > 2
    places = places_in(log)
    assert places.startswith(HEADING)
    assert "secret word" not in places
    for name in (
        "builtins.ValueError\n",
        "msgspec.DecodeError\n",
        "builtins.ExceptionGroup\n",
        "enum.py:",
        "(elsewhere)",
    ):
        assert name in places, name


def test_a_message_cannot_pass_for_places() -> None:
    log = log_text(ValueError(f"{HEADING}secret word{MESSAGES}"))
    assert "secret word" not in places_in(log)


def test_of_any_other_text_nothing_is_taken() -> None:
    assert places_in("Traceback (most recent call last):\nValueError: secret word") == ""
    assert places_in(f"secret word\n{HEADING}secret word{MESSAGES}") == ""
    assert places_in(f"{HEADING}secret word") == ""
