import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.artifacts.prompt_sources import (
    PromptSource,
    SourcedText,
    compose,
    listed,
    plain_text,
    sourced,
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
