import json
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from pydantic import BaseModel

from clean_room_agent.json_values import (
    FLAT,
    change_texts,
    from_json,
    from_plain,
    to_json,
    to_plain,
    to_shown,
)

PLAIN = {
    "part": {"names": ("a", "ü"), "colour": "red"},
    "share": 1,
    "open": True,
    "counts": {"b": None, "a": 2},
    "answer": {"text": "x"},
}


class Colour(Enum):
    RED = "red"


class Answer(BaseModel):
    text: str


class Part(Struct, frozen=True, kw_only=True):
    names: tuple[str, ...] = ()
    colour: Colour = Colour.RED


class Whole(Struct, frozen=True, kw_only=True):
    part: Part
    share: float
    open: bool = False
    counts: Mapping[str, int | None] = {}
    answer: Answer | None = None


WHOLE = Whole(
    part=Part(names=("a", "ü")), share=1, open=True, counts={"b": None, "a": 2}, answer=Answer(text="x")
)


def test_a_value_is_said_in_sequences_dicts_and_scalars_in_the_order_of_its_fields() -> None:
    assert to_plain(WHOLE) == PLAIN
    assert to_json(WHOLE) == json.dumps(PLAIN, ensure_ascii=False, separators=(",", ":"))


def test_it_comes_back() -> None:
    assert from_plain(to_plain(WHOLE), Whole) == WHOLE
    assert from_json(to_json(WHOLE), Whole) == WHOLE


@given(st.lists(st.text(st.characters(codec="utf-8"))), st.floats(allow_nan=False, allow_infinity=False))
def test_any_text_and_number_comes_back(names: list[str], share: float) -> None:
    value = Whole(part=Part(names=tuple(names)), share=share)
    assert from_json(to_json(value), Whole) == from_plain(to_plain(value), Whole) == value


def test_numbers_of_a_column_that_holds_truth_values_are_read() -> None:
    assert [from_plain(number, bool) for number in (0, 1)] == [False, True]


def test_fields_of_another_version_are_ignored() -> None:
    assert from_plain({"names": ["a"], "colours": 3}, Part) == Part(names=("a",))


@pytest.mark.parametrize(
    ("plain", "said"),
    [
        ({"part": {}}, "missing required field `share`"),
        ({"part": {"names": ["a", 1]}, "share": 1}, r"Expected `str`, got `int` - at `\$.part.names\[1\]`"),
        ({"part": {"colour": "blue"}, "share": 1}, r"Invalid enum value 'blue' - at `\$.part.colour`"),
        ({"part": {}, "share": 1, "answer": {}}, "text"),
    ],
)
def test_what_is_none_is_refused_with_its_place(plain: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        from_plain(plain, Whole)
    with pytest.raises(ValueError, match=said):
        from_json(json.dumps(plain), Whole)


class Kind(Enum):
    ONE = "one"


class Inner(Struct, frozen=True):
    name: str
    kinds: tuple[Kind, ...] = (Kind.ONE,)


class Outer(Struct, frozen=True):
    inner: Annotated[Inner, FLAT]
    other: Inner
    count: int = 1


def test_a_part_may_stand_beside_its_siblings_in_json() -> None:
    assert to_shown(Outer(inner=Inner("a"), other=Inner("b"))) == {
        "name": "a",
        "kinds": ["Kind.ONE"],
        "other": {"name": "b", "kinds": ["Kind.ONE"]},
        "count": 1,
    }


def test_every_text_is_changed_and_nothing_else() -> None:
    value = {"k": [Outer(inner=Inner("a"), other=Inner("b")), ("x", 2, None)]}
    assert change_texts(value, str.upper) == {
        "K": [Outer(inner=Inner("A"), other=Inner("B")), ("X", 2, None)]
    }


class Named(NamedTuple):
    name: str
    number: int


def test_a_named_tuple_stays_one() -> None:
    assert change_texts(Named("a", 1), str.upper) == Named("A", 1)
