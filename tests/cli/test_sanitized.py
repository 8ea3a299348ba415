"""Views without secrets and control characters."""

from clean_room_agent.cli.display import Display
from clean_room_agent.cli.sanitized import RedactedView, SanitizedView, sanitized
from clean_room_agent.orchestrator.events import Event, PassProgress

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class Seen:
    """Keeps the events that it is shown."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def notice(self, event: Event) -> None:
        self.events.append(event)


def test_an_event_for_a_terminal_has_neither_secrets_nor_control_characters() -> None:
    seen = Seen()
    SanitizedView(seen, Display({})).notice(PassProgress(doing=f"\x1b[2J {TOKEN}"))
    (event,) = seen.events
    assert isinstance(event, PassProgress)
    assert event.doing.startswith("\\x1b[2J [secret:")
    assert TOKEN not in event.doing


def test_an_event_for_a_program_keeps_its_characters() -> None:
    seen = Seen()
    RedactedView(seen, Display({})).notice(PassProgress(doing=f"\x1b[2J {TOKEN}"))
    (event,) = seen.events
    assert isinstance(event, PassProgress)
    assert event.doing.startswith("\x1b[2J [secret:")


def test_texts_are_made_safe_at_any_depth() -> None:
    assert sanitized((("a\x07b",), {"k": ["\x9b"]})) == (("a\\x07b",), {"k": ["\\x9b"]})
