import json

import pytest

from clean_room_agent.indexer.docstrings import read_docstring

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
    found, fields = read_docstring(text, is_jsdoc=False)
    assert found == kind
    assert fields is not None
    read = json.loads(fields)
    assert read["parameters"][0] == {"name": "first", "type": "int", "description": "what comes first of all"}
    assert read["parameters"][1]["name"] == "*rest"
    assert read["returns"] == [{"name": "", "type": "dict", "description": "by name"}]
    assert [one["name"] for one in read["raises"]] == ["ValueError"]


def test_jsdoc_tags_are_read() -> None:
    kind, fields = read_docstring(JSDOC, is_jsdoc=True)
    assert kind == "jsdoc"
    assert json.loads(fields or "")["parameters"][0] == {
        "name": "first",
        "type": "int",
        "description": "what comes first of all",
    }


@pytest.mark.parametrize(
    "text", ["Does it.", "Note:\n    not a field", "Title\n=====\n\nprose", "Args:", "a: b\n:c"]
)
def test_prose_is_plain(text: str) -> None:
    assert read_docstring(text, is_jsdoc=False) == ("plain", None)
