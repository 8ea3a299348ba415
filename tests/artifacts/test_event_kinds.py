"""The words of events are in old records: one that changes makes them unreadable."""

from clean_room_agent.artifacts.event_kinds import EventKind


def test_each_event_is_stored_under_its_name_in_small_letters() -> None:
    assert all(kind.value == kind.name.lower() for kind in EventKind)


def test_an_event_is_known_again_by_the_word_in_the_record() -> None:
    assert EventKind("taken_back") is EventKind.TAKEN_BACK
    assert f"{EventKind.RESUMED}" == "resumed"
