"""The JSON schema that a server holds an answer to: stricter than what is read.

A server that generates by a grammar puts required keys first, in their order, and may leave optional ones out for good;
a weak model in a list or a text without a bound goes on to its limit. So each key is required, and everything has an
end. Reading knows nothing of that: an answer from a server that holds nothing to a schema is good without a key that may
be empty, and with a long text. Hence `bounds` stand in the schema alone.
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
    """Limits of a value in the words of JSON schema, for an annotation; no answer is refused for them."""
    return Field(json_schema_extra=dict(limits))


Numbers = Annotated[list[Annotated[int, bounds(minimum=1, maximum=MAX_NUMBER)]], bounds(maxItems=MAX_NUMBER)]
"""Numbers of a list of candidates, from 1."""


@functools.cache
def strict_schema(model: type[BaseModel]) -> JsonSchema:
    """The model's schema: every key required, in the order of the model, and none beside them."""
    # Built in milliseconds each time otherwise, and every call needs it three times.
    schema: JsonSchema = _strict(model.model_json_schema())
    return schema


def at_most(schema: JsonSchema, key: str, count: int) -> JsonSchema:
    """The schema with at most `count` entries in the list of that key."""
    properties = {**schema["properties"], key: {**schema["properties"][key], "maxItems": max(count, 1)}}
    return {**schema, "properties": properties}


def numbers_to(schema: JsonSchema, count: int) -> JsonSchema:
    """The schema with lists of at most `count` numbers, and none above `count`."""
    properties = {
        key: {**listed, "maxItems": count, "items": {**listed["items"], "maximum": count}}
        for key, listed in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def brief(schema: JsonSchema, tokens: int) -> JsonSchema:
    """The schema with shorter lists and texts, so that the longest answer to it ends within so many tokens; with one entry
    to a list where none does. Where the bounds are alternatives, or of another kind, they stay.
    """
    for entries in BRIEF_ENTRIES:
        shortened: JsonSchema = _shortened(schema, entries)
        if longest(shortened, shortened) <= tokens * CHARS_PER_TOKEN:
            break
    return shortened


def longest(schema: JsonSchema, node: JsonSchema) -> float:
    """Characters of the longest value that the node of the schema allows; without end where it has no bound."""
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
