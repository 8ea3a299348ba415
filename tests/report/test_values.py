from enum import Enum
from typing import Annotated, NamedTuple

from msgspec import Struct

from clean_room_agent.report.values import FLAT, change_texts, plain


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
    assert plain(Outer(inner=Inner("a"), other=Inner("b"))) == {
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
