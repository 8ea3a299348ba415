"""Finds and unescapes Python docstrings."""

import ast
import re

from tree_sitter import Node

from clean_room_agent.indexer.languages.parsed import dedented

OPENING = re.compile(rb"([rR]?|[uU])(\"\"\"|'''|\"|')")
ESCAPE = re.compile(
    r"\\(?:\n|[\\'\"abfnrtv]|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|N\{[A-Z0-9 -]+\})"
)


def docstring_of(block: Node, source: bytes) -> str:
    """The dedented docstring at the start of a body or module; "" if there is none."""
    count, place = block.named_child_count, 0
    while place < count and block.named_child(place).type == "comment":
        place += 1
    if place == count:
        return ""
    first = block.named_child(place)
    if first.type != "expression_statement" or first.named_child_count != 1:
        return ""
    string = first.named_child(0)
    if string.type == "string":
        return dedented(_value(source, string.start_byte, string.end_byte))
    if string.type == "concatenated_string":
        parts = [child for child in string.named_children if child.type == "string"]
        return dedented("".join(_value(source, part.start_byte, part.end_byte) for part in parts))
    return ""


def _value(source: bytes, start: int, end: int) -> str:
    """Evaluate a string literal that may be a docstring; "" for bytes and f-strings."""
    opening = OPENING.match(source, start, end)
    if opening is None:
        return ""
    text = source[opening.end() : end - len(opening[2])].decode("utf-8", "replace")
    return ESCAPE.sub(_unescape, text) if "\\" in text and opening[1] not in {b"r", b"R"} else text


def _unescape(found: re.Match[str]) -> str:
    value = ast.literal_eval(f"'''{found[0]}'''")
    assert isinstance(value, str)
    return value
