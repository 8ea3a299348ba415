import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.artifacts.prompt_sources import (
    PromptSource,
    PromptSpan,
    SourcedText,
    compose,
    joined,
    listed,
    plain_text,
    sourced,
    stripped,
)

TASK, FILE, STEP = PromptSource.TASK, PromptSource.FILE, PromptSource.STEP
PIECE = st.one_of(
    st.text(alphabet="ab\n ", max_size=8),
    st.builds(
        sourced,
        st.text(alphabet="ab\n ", max_size=8),
        st.sampled_from(PromptSource),
    ),
)


def rows(text: SourcedText) -> list[tuple[int, int, PromptSource]]:
    return [(span.first, span.last, span.source) for span in text.spans]


def test_a_piece_has_the_lines_on_which_it_stands() -> None:
    text = compose(("# Title\n\n", sourced("one\ntwo\n", TASK), "\nRules\n- ", sourced("three", STEP), "."))
    assert text == "# Title\n\none\ntwo\n\nRules\n- three."
    assert rows(text) == [(3, 4, TASK), (7, 7, STEP)]


def test_a_line_that_two_pieces_share_is_the_first_ones() -> None:
    text = compose((sourced("a", TASK), " ", sourced("b\nc", FILE, path="x", number=5)))
    assert text.spans == (
        PromptSpan(first=1, last=1, source=TASK),
        PromptSpan(first=2, last=2, source=FILE, path="x", number=6),
    )


def test_what_is_known_of_some_lines_stays() -> None:
    text = sourced(compose(("before\n", sourced("x\n", FILE, path="p", number=3), "after")), STEP)
    assert rows(text) == [(1, 1, STEP), (2, 2, FILE), (3, 3, STEP)]


def test_an_attempts_number_is_not_counted_up() -> None:
    span = PromptSpan(first=1, last=3, source=PromptSource.ATTEMPT, number=2)
    assert span.from_line(3).number == 2


def test_joined_pieces_have_the_separator_between_them() -> None:
    text = joined("\n\n", (sourced("a", TASK), sourced("b", STEP)))
    assert (text, rows(text)) == ("a\n\nb", [(1, 1, TASK), (3, 3, STEP)])
    assert joined("\n", ()) == ""


def test_stripping_moves_the_spans() -> None:
    text = stripped(compose(("\n\n", sourced("a\nb\n\n", TASK))))
    assert (text, rows(text)) == ("a\nb", [(1, 2, TASK)])


@pytest.mark.parametrize(
    ("name", "item"),
    [
        ("src/a.py", ("src/a.py", "")),
        ("src/a.py :: A.b", ("src/a.py", "A.b")),
        ("src/a.py :: A.b (lines 3-9)", ("src/a.py", "A.b")),
        ("a (copy).py", ("a (copy).py", "")),
        ("a.py :: whole file (about 12 tokens)", ("a.py", "whole file")),
    ],
)
def test_a_listed_name_says_which_piece_of_which_file_it_is(name: str, item: tuple[str, str]) -> None:
    (span,) = listed(name).spans
    assert (span.path, span.symbol) == item


def test_a_sourced_text_is_a_text_like_any_other() -> None:
    text = sourced("a\nb", TASK)
    assert json.loads(json.dumps({"x": text})) == {"x": "a\nb"}
    assert copy.deepcopy(text).spans == text.spans
    assert str(text) is text
    assert type(plain_text(text)) is str


@given(st.lists(PIECE, max_size=6))
def test_composing_keeps_every_letter_and_spans_in_order(pieces: list[str]) -> None:
    text = compose(pieces)
    assert plain_text(text) == "".join(pieces)
    last = 0
    for span in text.spans:
        assert last < span.first <= span.last <= text.count("\n") + 1
        last = span.last
