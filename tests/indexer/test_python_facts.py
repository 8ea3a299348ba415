from pathlib import Path

import pytest

from clean_room_agent.indexer.extract import FileFacts, extract

SHAPES = '''\
#!/usr/bin/env python
"""What shapes are."""
from __future__ import annotations

import os.path as p, json
from typing import TYPE_CHECKING, TypeAlias
from .units import (
    Metre,
    to_metres as convert,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
else:
    Sequence = tuple

Number: TypeAlias = int | float
WIDTH, HEIGHT = 1, 2
try:
    FAST = True
except ImportError:
    FAST = False
TABLE = {
    "a": "%s",
}
type Pair[T] = tuple[T, T]


@register(
    "shape",
)
class Shape(Base,
            metaclass=Meta):  # because plug-ins look here
    """A shape.

    Args:
        sides (int): how many
    """

    sides: int = 3
    # In one line
    # and another.

    @property
    def area(
        self,
    ) -> float:
        # TODO: cache it
        """Of the surface."""
        local = 1

        def inner(): return local

        return inner()

    @overload
    async def scale(self, by: int) -> None: ...
    @overload
    async def scale(self, by: float) -> None: ...

    class Meta:
        """Nested."""


if WIDTH:
    def conditional(): pass
else:
    def conditional(): return 1
a = b = lambda: 0
''' % ("v" * 300)


def facts_of(folder: Path, text: str | bytes, name: str = "shapes.py") -> FileFacts:
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    facts = extract(folder, name, max_bytes=2_000_000)
    assert isinstance(facts, FileFacts)
    return facts


@pytest.fixture
def shapes(tmp_path: Path) -> FileFacts:
    return facts_of(tmp_path, SHAPES)


def test_every_definition_stands_with_its_kind_lines_and_parent(shapes: FileFacts) -> None:
    names = [symbol[1] for symbol in shapes.symbols]
    assert [(name, kind, start, end, names[parent] if parent >= 0 else "") for
            _, name, kind, start, end, _, parent in shapes.symbols] == [
        ("Sequence", "variable", 15, 15, ""),
        ("Number", "type_alias", 17, 17, ""),
        ("WIDTH", "variable", 18, 18, ""),
        ("HEIGHT", "variable", 18, 18, ""),
        ("FAST", "variable", 20, 20, ""),
        ("TABLE", "variable", 23, 25, ""),
        ("Pair", "type_alias", 26, 26, ""),
        ("Shape", "class", 29, 62, ""),
        ("Shape.sides", "variable", 40, 40, "Shape"),
        ("Shape.area", "method", 44, 54, "Shape"),
        ("Shape.area.inner", "function", 52, 52, "Shape.area"),
        ("Shape.scale", "method", 56, 57, "Shape"),
        ("Shape.scale", "method", 58, 59, "Shape"),
        ("Shape.Meta", "class", 61, 62, "Shape"),
        ("conditional", "function", 66, 66, ""),
        ("conditional", "function", 68, 68, ""),
        ("a", "variable", 69, 69, ""),
        ("b", "variable", 69, 69, ""),
    ]  # fmt: skip


def test_a_signature_has_all_its_lines_and_no_more(shapes: FileFacts) -> None:
    signatures = {symbol[1]: symbol[5] for symbol in shapes.symbols}
    assert signatures["Shape"] == "class Shape(Base,\n            metaclass=Meta):"
    assert signatures["Shape.area"] == "def area(\n        self,\n    ) -> float:"
    assert signatures["Shape.scale"] == "async def scale(self, by: float) -> None:"
    assert signatures["Shape.sides"] == "sides: int = 3"
    assert signatures["TABLE"] == "TABLE = ..."


def test_docstrings_belong_to_their_symbols(shapes: FileFacts) -> None:
    names = [symbol[1] for symbol in shapes.symbols]
    found = [(names[place] if place >= 0 else "", text, kind) for place, text, kind, _ in shapes.docstrings]
    assert found == [
        ("", "What shapes are.", "plain"),
        ("Shape", "A shape.\n\nArgs:\n    sides (int): how many", "google"),
        ("Shape.area", "Of the surface.", "plain"),
        ("Shape.Meta", "Nested.", "plain"),
    ]


def test_comments_know_their_innermost_symbol(shapes: FileFacts) -> None:
    names = [symbol[1] for symbol in shapes.symbols]
    found = [(names[place], *rest) for place, *rest in shapes.comments]
    assert found == [
        ("Shape", 33, "because plug-ins look here", "rationale", True),
        ("Shape", 41, "In one line\nand another.", "general", False),
        ("Shape.area", 48, "TODO: cache it", "todo", False),
    ]


def test_imports_are_kept_as_written(shapes: FileFacts) -> None:
    assert [(raw.target, raw.names, raw.kind) for raw in shapes.imports] == [
        ("os.path", (), "import"),
        ("json", (), "import"),
        ("typing", ("TYPE_CHECKING", "TypeAlias"), "import"),
        (".units", ("Metre", "to_metres"), "import"),
        ("collections.abc", ("Sequence",), "type_ref"),
    ]


def test_what_parses_is_read_and_the_first_error_is_named(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, "def good(): pass\n\ndef bad(:\n    x = (\n\nclass Late: pass\n")
    assert facts.parse_error == "line 3, column 1"
    assert facts.symbols[0][1] == "good"


@pytest.mark.parametrize(
    ("data", "signature", "doc"),
    [
        ('# coding: latin-1\ndef f(é):\n    "Größe"\n'.encode("latin-1"), "def f(é):", "Größe"),
        ('def f(é):\r\n    """Größe\r\n    zwei"""\r\n'.encode(), "def f(é):", "Größe\nzwei"),
        (b"\xef\xbb\xbf" + 'def f(é):\n    "Größe"\n'.encode(), "def f(é):", "Größe"),
        ('def f(é):\n    "Größe"\n'.encode("utf-16"), "def f(é):", "Größe"),
    ],
    ids=["latin-1", "crlf", "bom", "utf-16"],
)
def test_encodings_and_line_ends_do_not_show(tmp_path: Path, data: bytes, signature: str, doc: str) -> None:
    facts = facts_of(tmp_path, data)
    assert [symbol[5] for symbol in facts.symbols] == [signature]
    assert [found[1] for found in facts.docstrings] == [doc]


def test_deep_nesting_is_no_problem(tmp_path: Path) -> None:
    functions = "".join(f"{' ' * depth}def f{depth}():\n" for depth in range(90)) + " " * 90 + "pass\n"
    facts = facts_of(tmp_path, "x = " + "(" * 5000 + ")" * 5000 + "\n" + functions)
    assert len(facts.symbols) == 91
    assert facts.symbols[-1][1].count(".") == 89


def test_a_file_above_a_megabyte_is_text_alone(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, "def needle(): pass\n" + "x = 1  # filler\n" * 70_000)
    assert facts.symbols == ()
    assert facts.language == "python"
    assert facts.terms["needl"] == (0, 0, 0, 0, 1)


def test_an_empty_file_says_only_its_name(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, b"", "empty_module.py")
    assert (facts.symbols, facts.docstrings, facts.parse_error) == ((), (), None)
    assert set(facts.terms) == {"empti", "modul", "empty_module", "py"}


def test_terms_are_counted_by_field(shapes: FileFacts) -> None:
    path, symbols, docstrings, comments, body = shapes.terms["shape"]
    assert (path, symbols, docstrings, comments) == (1, 1, 2, 0)
    assert body == 4
    assert shapes.terms["cach"] == (0, 0, 0, 1, 1)
