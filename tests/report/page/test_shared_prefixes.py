"""Shared beginnings: every text can be put together again, and what is shared is there once."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.report.page.shared_prefixes import WORTH, Beginning, OwnText, share_beginnings

LONG = "rules " * (WORTH // 6 + 1)


def test_what_texts_begin_with_is_stored_once() -> None:
    texts = {1: f"{LONG}\na", 2: f"{LONG}\nb", 3: "another"}
    beginnings, own = share_beginnings(texts)
    assert [(entry.text, entry.uses, entry.first_line) for entry in beginnings] == [(LONG, 2, 1)]
    assert [own[key].lines for key in (1, 2, 3)] == [("a",), ("b",), ("another",)]
    assert own[1].first_line == 2


def test_a_beginning_goes_on_from_another() -> None:
    more = LONG.upper()
    texts = {1: f"{LONG}\nx", 2: f"{LONG}\n{more}\na", 3: f"{LONG}\n{more}\nb", 4: f"{LONG}\n{more}"}
    beginnings, own = share_beginnings(texts)
    assert [(entry.chain, entry.first_line, entry.last_line, entry.uses) for entry in beginnings] == [
        ((), 1, 1, 4),
        ((1,), 2, 2, 3),
    ]
    assert own[4].lines == ()
    assert own[2].chain == (1, 2)


def test_a_short_common_line_is_not_worth_a_reference() -> None:
    beginnings, own = share_beginnings({1: "# Task\na", 2: "# Task\nb"})
    assert beginnings == ()
    assert own[2].text == "# Task\nb"


def whole_text(beginnings: Sequence[Beginning], own: OwnText) -> str:
    stored = [beginnings[number - 1].text for number in own.chain]
    return "\n".join((*stored, *own.lines))


@given(
    st.lists(
        st.lists(st.sampled_from(["", "a", "b", LONG, LONG[::-1]]), min_size=1, max_size=6).map("\n".join),
        max_size=8,
    )
)
def test_every_text_is_whole_again(texts: list[str]) -> None:
    beginnings, own = share_beginnings(dict(enumerate(texts)))
    assert [whole_text(beginnings, own[key]) for key in range(len(texts))] == texts


def test_many_texts_that_each_go_on_from_the_last_do_not_exhaust_the_stack() -> None:
    texts = {number: "\n".join([LONG] * number) for number in range(1, 400)}
    beginnings, own = share_beginnings(texts)
    assert whole_text(beginnings, own[399]) == texts[399]
