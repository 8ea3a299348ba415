"""Python's docstrings: where they stand in a block, and what they say."""

import ast
import re

from tree_sitter import Node

OPENING = re.compile(rb"([rR]?|[uU])(\"\"\"|'''|\"|')")
ESCAPE = re.compile(
    r"\\(?:\n|[\\'\"abfnrtv]|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|N\{[A-Z0-9 -]+\})"
)
BLANK_LINE = re.compile(r"\n[ \t]+(?=\n|\Z)")
INDENTATION = re.compile(r"\n( *)(?=[^ \n])")


def docstring_of(block: Node, source: bytes) -> str:
    """The docstring with which a body or a module begins, dedented; "" where it begins otherwise."""
    start = block.start_byte
    if source[start : start + 1] not in b"\"'rRuU#" and block.type == "block":
        return ""
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
        return clean(_value(source, string.start_byte, string.end_byte))
    if string.type == "concatenated_string":
        parts = [child for child in string.named_children if child.type == "string"]
        return clean("".join(_value(source, part.start_byte, part.end_byte) for part in parts))
    return ""


def _value(source: bytes, start: int, end: int) -> str:
    """What a literal that may be a docstring stands for; "" for bytes and f-strings."""
    opening = OPENING.match(source, start, end)
    if opening is None:
        return ""
    text = source[opening.end() : end - len(opening[2])].decode("utf-8", "replace")
    return ESCAPE.sub(_unescape, text) if "\\" in text and opening[1] not in {b"r", b"R"} else text


def _unescape(found: re.Match[str]) -> str:
    value = ast.literal_eval(f"'''{found[0]}'''")
    assert isinstance(value, str)
    return value


def clean(text: str) -> str:
    """The text without the indentation that its lines after the first have in common."""
    if "\n" not in text:
        return text.strip()
    text = BLANK_LINE.sub("\n", text.expandtabs())
    margin = min(map(len, INDENTATION.findall(text)), default=0)
    return (text.replace("\n" + " " * margin, "\n") if margin else text).strip()
