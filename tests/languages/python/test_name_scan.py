"""Names found in text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.languages.latin1 import real_name
from clean_room_agent.languages.python.name_scan import mentions


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a.b(c)", {"a.b(", "c"}),
        ("'a' \"b\" '''c\nd''' # e", set()),
        (r"'it\'s' + x", {"x"}),
        (r"r'\n' + b'y' + rb'z' + x", {"x"}),
        ("f'{a.b!r:>{width}} {{c}} d' + e", {"a.b", "width", "e"}),
        ("F'''{one(\n)}''' rf'{two}'", {"one(", "two"}),
        ("def name(x): pass", {"x", "pass"}),
        ("class Name: pass", {"pass"}),
        ("from a.b import (c,\n d)\nfrom x import y; z", set()),
        ("import a, \\\n b\nc", {"c"}),
        ("yield from a", {"yield", "from", "a"}),
        ("@decorated.by(x)\n", {"@decorated.by(", "x"}),
        ("x = y", {"x =", "y"}),
        ("f(x=y)", {"f(", "x=", "y"}),
        ("x == y", {"x", "y"}),
        ("super().a(b)", {"super().a(", "b"}),
        ("super(A, self).a", {"super(A, self).a"}),
        ("a().b[0].c", {"a(", ".b", ".c"}),
        ("0xff + 1e5 + 1_000.5j + ...", set()),
        ("', '.join(x)", {"x"}),
        ("a 'b c\nd", {"a", "d"}),
        ("default.importer", {"default.importer"}),
    ],
)
def test_what_a_text_mentions(text: str, found: set[str]) -> None:
    assert mentions(text) == found


def test_names_of_other_alphabets_are_found_whole() -> None:
    text = "größe.änderung(π)".encode().decode("latin-1")
    assert {real_name(one) for one in mentions(text)} == {"größe.änderung(", "π"}


@given(st.text(alphabet="ab.'\"\\{}f#\n (=@1", max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    for one in mentions(text):
        assert re.search(r"[abf]", one)
