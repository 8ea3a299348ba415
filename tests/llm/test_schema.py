"""Schemas whose answers end."""

import json
import math

import pytest

from clean_room_agent.llm.schema import BRIEF_CHARS, JsonSchema, brief, longest

ENTRY: JsonSchema = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^s[0-9]$"},
        "role": {"enum": ["modify", "create"]},
        "text": {"type": "string", "maxLength": 600},
    },
}
STEPS: JsonSchema = {
    "$defs": {"Entry": ENTRY},
    "type": "object",
    "properties": {"steps": {"type": "array", "maxItems": 12, "items": {"$ref": "#/$defs/Entry"}}},
}


def steps(schema: JsonSchema) -> int:
    return int(schema["properties"]["steps"]["maxItems"])


@pytest.mark.parametrize(("tokens", "entries"), [(1200, 8), (500, 4), (300, 2), (150, 1), (10, 1)])
def test_a_brief_answer_has_as_many_entries_as_end_in_time(tokens: int, entries: int) -> None:
    shortened = brief(STEPS, tokens)
    assert steps(shortened) == entries
    assert shortened["$defs"]["Entry"]["properties"]["text"]["maxLength"] == BRIEF_CHARS
    assert steps(STEPS) == 12


def test_bounds_that_are_tighter_already_stay() -> None:
    tight = {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 9}}
    assert brief(tight, 1000) == tight


def test_no_value_is_longer_than_the_longest() -> None:
    entry = {"id": "s1", "role": "modify", "text": "x" * 600}
    value = json.dumps({"steps": [entry] * 12})
    assert len(value) <= longest(STEPS, STEPS) < len(value) * 1.2


def test_what_has_no_bound_has_no_longest_value() -> None:
    assert longest({}, {"type": "string"}) == math.inf
    assert (
        longest({}, {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "null"}}]}) == math.inf
    )
