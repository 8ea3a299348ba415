import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.db.curated.postings import SearchFile
from clean_room_agent.indexer.terms import count_terms, read_search_file, stem, terms_of
from clean_room_agent.languages.nesting import nest
from clean_room_agent.languages.parsed import Definition


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("caresses", "caress"), ("ponies", "poni"), ("cats", "cat"), ("agreed", "agre"), ("plastered", "plaster"),
        ("motoring", "motor"), ("conflated", "conflat"), ("hopping", "hop"), ("filing", "file"), ("happy", "happi"),
        ("sky", "sky"), ("relational", "relat"), ("digitizer", "digit"), ("triplicate", "triplic"),
        ("electrical", "electr"), ("adjustment", "adjust"), ("adoption", "adopt"), ("controll", "control"),
        ("rate", "rate"), ("cease", "ceas"), ("generalizations", "gener"), ("is", "is"), ("größe", "größe"),
    ],
)  # fmt: skip
def test_stems_are_porters(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize(
    ("word", "terms"),
    [
        ("parse_args", ("pars", "arg", "parse_args")),
        ("parseArgs", ("pars", "arg", "parseargs")),
        ("HTTPServer", ("http", "server", "httpserver")),
        ("__init__", ("init",)),
        ("the", ()),
        ("x", ()),
        ("utf8", ("utf", "utf8")),
        ("Größe", ("größe",)),
        ("größe_mal_2", ("größe", "mal", "größe_mal_2")),
        ("a" * 65, ()),
    ],
)
def test_identifiers_are_split_and_kept(word: str, terms: tuple[str, ...]) -> None:
    assert terms_of(word) == terms


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
