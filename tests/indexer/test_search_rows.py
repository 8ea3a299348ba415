"""What search holds of a file: the words of its chunks, in order, and the terms of its fields."""

import re

from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.db.curated.postings import SearchFile
from clean_room_agent.indexer.search_rows import read_search_file
from clean_room_agent.indexer.terms import count_terms
from clean_room_agent.languages.nesting import nest
from clean_room_agent.languages.parsed import Definition

SOURCE = b"""import os
class Cart:
    total = 0xFF
    def add(self, item):
        def inner(): return item
        return inner
def buy(): return Cart
"""


def read(source: bytes, *definitions: tuple[str, str, bytes, bytes]) -> SearchFile:
    """The file's rows: each definition by name, kind, and what it begins and ends with."""
    found = []
    for name, kind, first, last in definitions:
        start = source.index(first)
        end = source.index(last, start) + len(last)
        found.append(Definition(name, kind, start, end, 1, 1, name, holds=True))
    return read_search_file(
        "shop/cart.py", source, nest(found), docstrings=["A cart."], comments=["why", "why"]
    )


def words(file: SearchFile) -> dict[int, str]:
    """The words of each chunk, by place."""
    return {place: " ".join(file.words[ord(number)] for number in numbers) for place, numbers in file.chunks}


def test_a_chunk_is_a_definition_without_those_that_a_class_holds() -> None:
    file = read(
        SOURCE,
        ("Cart", "class", b"class", b"return inner\n"),
        ("add", "function", b"def add", b"return inner\n"),
        ("inner", "function", b"def inner", b"return item"),
        ("buy", "function", b"def buy", b"return Cart"),
    )
    assert words(file) == {
        0: "class Cart total xFF",
        1: "def add self item def inner return item return inner",
        3: "def buy return Cart",
    }
    assert list(file.words)[:3] == ["import", "os", "class"]


def test_each_field_has_its_own_terms() -> None:
    path, symbols, docstrings, comments, body = read(SOURCE, ("buy", "function", b"def buy", b"Cart\n")).terms
    assert path == {"shop": 1, "cart": 1, "py": 1}
    assert symbols == {"bui": 1}
    assert docstrings == {"cart": 1}
    assert comments == {}  # nobody searches for "why"
    assert body == count_terms(SOURCE.decode())


@given(st.text(alphabet="aB_09 .:\tö٣\n", max_size=40))
def test_a_chunk_has_the_words_that_the_pattern_finds(text: str) -> None:
    source = f"def f():\n{text}\n#".encode()
    file = read(source, ("f", "function", b"def", b"#"))
    assert words(file) == {0: " ".join(re.findall(r"[^\W\d]\w*", f"def f {text}"))}
