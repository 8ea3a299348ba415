import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.languages.docstrings import read_docstring, read_jsdoc

GOOGLE = """Does it.

Args:
    first (int): what comes
        first of all
    *rest: the others

Returns:
    dict: by name

Raises:
    ValueError: when wrong
"""
NUMPY = """Does it.

Parameters
----------
first : int
    what comes first of all
*rest
    the others

Returns
-------
dict
    by name

Raises
------
ValueError
    when wrong
"""
SPHINX = """Does it.

:param int first: what comes
    first of all
:param *rest: the others
:returns: by name
:rtype: dict
:raises ValueError: when wrong
"""
JSDOC = """Does it.

@param {int} first - what comes
  first of all
@param *rest the others
@returns {dict} by name
@throws {ValueError} when wrong
"""


@pytest.mark.parametrize(("kind", "text"), [("google", GOOGLE), ("numpy", NUMPY), ("sphinx", SPHINX)])
def test_formats_are_told_apart_and_say_the_same(kind: str, text: str) -> None:
    found, fields = read_docstring(text)
    assert found == kind
    assert fields is not None
    read = json.loads(fields)
    assert read["parameters"][0] == {"name": "first", "type": "int", "description": "what comes first of all"}
    assert read["parameters"][1]["name"] == "*rest"
    assert read["returns"] == [{"name": "", "type": "dict", "description": "by name"}]
    assert [one["name"] for one in read["raises"]] == ["ValueError"]


def test_jsdoc_tags_are_read() -> None:
    kind, fields = read_jsdoc(JSDOC)
    assert kind == "jsdoc"
    assert json.loads(fields or "")["parameters"][0] == {
        "name": "first",
        "type": "int",
        "description": "what comes first of all",
    }


@pytest.mark.parametrize(
    "text",
    [
        ":param x: y\n:  : odd",
        "Does it.",
        "Note:\n    not a field",
        "Title\n=====\n\nprose",
        "Args:",
        "a: b\n:c",
    ],
)
def test_prose_is_plain(text: str) -> None:
    assert read_docstring(text) == ("plain", None)


def test_sections_may_be_underlined_with_equals_signs_of_any_number() -> None:
    text = "Does.\n\nParameters\n=====\n\nx, y : int\n    Both.\n\nNotes\n=====\n\nnot : this\n\nRaises\n======\n\nValueError : When.\n"
    kind, fields = read_docstring(text)
    assert kind == "numpy"
    assert json.loads(fields or "") == {
        "parameters": [
            {"name": "x", "type": "int", "description": "Both."},
            {"name": "y", "type": "int", "description": "Both."},
        ],
        "returns": [],
        "raises": [{"name": "ValueError", "type": "", "description": "When."}],
    }


def test_epydoc_counts_as_sphinx() -> None:
    kind, fields = read_docstring("Does.\n\n@param x: what\n@return: that\n")
    assert kind == "sphinx"
    assert [one["name"] for one in json.loads(fields or "")["parameters"]] == ["x"]


def test_the_last_field_ends_with_its_paragraph() -> None:
    _, fields = read_docstring(":param \\*x: what\n  it is\n\n.. note::\n\n   more\n")
    assert json.loads(fields or "")["parameters"] == [{"name": "*x", "type": "", "description": "what it is"}]


@pytest.mark.parametrize(
    ("tag", "name", "type_"),
    [
        ("@param {{a: {b: string}}} x - y", "x", "{a: {b: string}}"),
        ("@param {number} [x=1] y", "x", "number"),
        ("@param {number} [ x = [1] ] y", "x", "number"),
        ("@param options.x y", "options.x", ""),
        ("@property {Array<{a: 1}>} x", "x", "Array<{a: 1}>"),
    ],
)
def test_jsdoc_names_and_types_are_told_apart(tag: str, name: str, type_: str) -> None:
    _, fields = read_jsdoc(tag)
    found = json.loads(fields or "")["parameters"][0]
    assert (found["name"], found["type"]) == (name, type_)


PIECES = [
    "Args:",
    "Returns:",
    "Raises:",
    "x",
    ":param",
    ":",
    "@param",
    "x:",
    "(int)",
    "\n",
    "\n    ",
    "Parameters",
    "----",
    "{",
    "[",
    "]",
]


@given(st.lists(st.sampled_from(PIECES), max_size=25), st.booleans())
def test_no_text_is_too_odd(pieces: list[str], is_jsdoc: bool) -> None:
    kind, fields = (read_jsdoc if is_jsdoc else read_docstring)(" ".join(pieces))
    assert (fields is None) or json.loads(fields)
    assert kind in {"google", "numpy", "sphinx", "jsdoc", "plain"}
