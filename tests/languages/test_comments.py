import pytest

from clean_room_agent.languages.comments import classify


@pytest.mark.parametrize(
    ("text", "kind", "gives_reason"),
    [
        ("TODO: later", "todo", False),
        ("TODO remove, because nobody needs it", "todo", True),
        ("FIXME this leaks", "fixme", False),
        ("XXX", "fixme", False),
        ("ugly hack for old servers", "hack", False),
        ("see #1234", "bug_ref", False),
        ("gh-99 and others", "bug_ref", False),
        ("https://example.org/o/r/issues/12", "bug_ref", False),
        ("NOTE: order matters", "note", False),
        ("sorted, so that two runs agree", "rationale", True),
        ("must come first, otherwise the lock is lost", "rationale", True),
        ("the next two lines", "general", False),
        ("color #fff", "general", False),
        ("methods todolist", "general", False),
    ],
)
def test_a_comment_has_the_kind_that_its_words_say(text: str, kind: str, gives_reason: bool) -> None:
    assert classify(text) == (kind, gives_reason)
