"""The JSON schema that a server holds an answer to; it is stricter than the reader.

A server that generates by a grammar emits required keys first, in order, and may omit optional ones for good; a weak model
fills a list or text without a bound up to the token limit. So every key is required, and everything is bounded. The
reader does not insist: an answer from a server that does not enforce schemas may lack a key that can be empty, or contain
a long text. Hence `bounds` appear in the schema only.
"""

import functools
import json
import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field

JsonSchema = Mapping[str, Any]
NOISE = frozenset(("title", "description", "default"))
"""What pydantic says of a value beyond its shape."""

SENTENCES_CHARS = 600
SENTENCE_CHARS = 300
NAME_CHARS = 120
PATH_CHARS = 240
ID_PATTERN = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$"
MAX_NUMBER = 999
PATTERN_CHARS = 32
"""That a text with a pattern and no other bound may have: each pattern here ends."""
BRIEF_CHARS = 160
"""Of each text of a brief answer."""
BRIEF_ENTRIES = (8, 4, 2, 1)
"""Of each list of a brief answer: the first that lets it end in time."""
CHARS_PER_TOKEN = 2.5
"""Of JSON in English, at the least: so an answer of so many tokens has this many characters."""


def bounds(**limits: int | str) -> Any:
    """Limits of a value, in terms of JSON schema, for an annotation; no answer is rejected for exceeding them."""
    return Field(json_schema_extra=dict(limits))


Numbers = Annotated[list[Annotated[int, bounds(minimum=1, maximum=MAX_NUMBER)]], bounds(maxItems=MAX_NUMBER)]
"""Numbers of a list of candidates, from 1."""


@functools.cache
def strict_schema(model: type[BaseModel]) -> JsonSchema:
    """The model's schema: every key required, in the order of the model, and no others."""
    # Cached: building takes milliseconds, and every call needs it three times.
    schema: JsonSchema = _strict(model.model_json_schema())
    return schema


def at_most(schema: JsonSchema, key: str, count: int) -> JsonSchema:
    """The schema with at most `count` entries in the list of that key."""
    properties = {**schema["properties"], key: {**schema["properties"][key], "maxItems": max(count, 1)}}
    return {**schema, "properties": properties}


def numbers_to(schema: JsonSchema, count: int) -> JsonSchema:
    """The schema with lists of at most `count` numbers, none above `count`."""
    properties = {
        key: {**listed, "maxItems": count, "items": {**listed["items"], "maximum": count}}
        for key, listed in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def brief(schema: JsonSchema, tokens: int) -> JsonSchema:
    """Shorten lists and texts in the schema so that the longest possible answer fits into so many tokens.

    If that is impossible, lists get one entry. Alternatives, and bounds of other kinds, stay as they are.
    """
    for entries in BRIEF_ENTRIES:
        shortened: JsonSchema = _shortened(schema, entries)
        if longest(shortened, shortened) <= tokens * CHARS_PER_TOKEN:
            break
    return shortened


def longest(schema: JsonSchema, node: JsonSchema) -> float:
    """Characters of the longest value that this node of the schema allows; infinite if unbounded."""
    if "$ref" in node:
        return longest(schema, schema["$defs"][node["$ref"].rpartition("/")[2]])
    if "anyOf" in node:
        return max(longest(schema, way) for way in node["anyOf"])
    chars: float = len(str(MAX_NUMBER)) + 2
    if "enum" in node:
        chars = max(len(json.dumps(word)) for word in node["enum"])
    elif node["type"] == "object":
        chars = 2 + sum(len(key) + 6 + longest(schema, value) for key, value in node["properties"].items())
    elif node["type"] == "array":
        chars = 2 + node.get("maxItems", math.inf) * (2 + longest(schema, node["items"]))
    elif node["type"] == "string":
        chars = 2 + node.get("maxLength", PATTERN_CHARS if "pattern" in node else math.inf)
    return chars


def _shortened(node: Any, entries: int) -> Any:
    if isinstance(node, list):
        return [_shortened(part, entries) for part in node]
    if not isinstance(node, dict):
        return node
    most = {"maxItems": entries, "maxLength": BRIEF_CHARS}
    kept = {key: _shortened(value, entries) for key, value in node.items()}
    return kept | {
        key: min(node[key], bound) for key, bound in most.items() if isinstance(node.get(key), int)
    }


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(part) for part in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: _strict(value) for key, value in node.items() if key not in NOISE or isinstance(value, Mapping)
    }
    if isinstance(kept.get("properties"), dict) and kept.get("type") == "object":
        kept |= {"required": list(kept["properties"]), "additionalProperties": False}
    return kept
