"""The registry of prompts: what a server is asked to hold each answer to."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from testing.prompt_inputs import INPUTS

from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.llm.answer_rules import MARK, brief, longest
from clean_room_agent.llm.answers import ParseFault
from clean_room_agent.llm.prompt import Prompt

SHAPED = [prompt for prompt in PROMPTS if prompt.schema is not None]
FREE_KEYS = {"role", "needs", "category", "decision"}
"""Of an example, what holds a word of the form or an id of another entry."""
CHARS_PER_TOKEN = 3


def resolved(schema: Any, node: Any) -> Any:
    return schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node


def nodes(schema: Any, node: Any) -> Iterator[Any]:
    node = resolved(schema, node)
    if "anyOf" in node:
        for way in node["anyOf"]:
            yield from nodes(schema, way)
        return
    yield node
    for child in (*node.get("properties", {}).values(), *([node["items"]] if "items" in node else [])):
        yield from nodes(schema, child)


def loose_objects(schema: Any, node: Any, value: Any) -> Iterator[dict[str, Any]]:
    """The objects in the value whose keys are not those of the schema, in its order, all required, and no others allowed."""
    node = resolved(schema, node)
    if isinstance(value, dict):
        keys = list(value) == list(node["properties"]) == node["required"]
        if not keys or node["additionalProperties"] is not False:
            yield value
        for key, inner in value.items():
            yield from loose_objects(schema, node["properties"][key], inner)
    elif isinstance(value, list):
        for inner in value:
            yield from loose_objects(schema, node["items"], inner)


def sent(prompt: Prompt[Any, Any]) -> Any:
    return prompt.shape(INPUTS[prompt.name]).schema


def texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner, key)


@pytest.mark.parametrize("prompt", SHAPED, ids=lambda prompt: prompt.name)
def test_every_key_is_required_in_the_order_of_the_example(prompt: Prompt[Any, Any]) -> None:
    assert list(loose_objects(sent(prompt), sent(prompt), json.loads(prompt.example))) == []


@pytest.mark.parametrize("prompt", SHAPED, ids=lambda prompt: prompt.name)
def test_the_longest_brief_answer_ends_before_its_limit(prompt: Prompt[Any, Any]) -> None:
    schema = brief(sent(prompt), prompt.max_answer_tokens)
    assert longest(schema, schema) <= prompt.max_answer_tokens * CHARS_PER_TOKEN
    assert list(loose_objects(schema, schema, json.loads(prompt.example))) == []


@pytest.mark.parametrize("prompt", SHAPED, ids=lambda prompt: prompt.name)
def test_everything_has_an_end(prompt: Prompt[Any, Any]) -> None:
    schema = sent(prompt)
    for node in nodes(schema, schema):
        match node["type"]:
            case "array":
                assert 0 < node["maxItems"] < 100
            case "string":
                assert "enum" in node or "pattern" in node or 0 < node["maxLength"] <= 1000
                assert "pattern" not in node or (node["pattern"][0], node["pattern"][-1]) == ("^", "$")
            case "integer" | "number":
                assert node.get("minimum", node.get("exclusiveMinimum")) <= node["maximum"]
            case kind:
                assert kind == "object"


@pytest.mark.parametrize("prompt", SHAPED, ids=lambda prompt: prompt.name)
def test_every_id_has_a_pattern(prompt: Prompt[Any, Any]) -> None:
    schema = sent(prompt)
    for node in nodes(schema, schema):
        for key, inner in node.get("properties", {}).items():
            if key in {"id", "needs"}:
                assert "pattern" in inner.get("items", inner)


@pytest.mark.parametrize("name", ["meta_plan", "part_plan"])
def test_paths_look_like_files_or_are_known(name: str) -> None:
    prompt = next(prompt for prompt in SHAPED if prompt.name == name)
    inputs = replace(INPUTS[name], paths=("src/a.py", "gradlew", "bin/run"))
    schema = prompt.shape(inputs).schema
    assert schema is not None
    path = (
        schema["$defs"]["PartAnswer"]["properties"]["files"]["items"]
        if name == "meta_plan"
        else schema["$defs"]["FileAnswer"]["properties"]["path"]
    )
    listed, like = path["anyOf"]
    assert listed["enum"] == ["gradlew", "bin/run"]
    for text, fits in (
        ("src/new.py", True),
        ("Makefile", True),
        (".gitignore", True),
        ("1h30m", False),
        ("a b", False),
    ):
        assert (re.fullmatch(like["pattern"], text) is not None) is fits, text


@pytest.mark.parametrize(
    ("name", "entry"), [("change_points", "PointAnswer"), ("symbol_targets", "TargetAnswer")]
)
def test_places_are_in_files_that_look_like_files_or_are_known(name: str, entry: str) -> None:
    prompt = next(prompt for prompt in SHAPED if prompt.name == name)
    schema = prompt.shape(replace(INPUTS[name], paths=("src/a.py", "gradlew"))).schema
    assert schema is not None
    assert schema["$defs"][entry]["properties"]["file"]["anyOf"][0]["enum"] == ["gradlew"]


@pytest.mark.parametrize("prompt", SHAPED, ids=lambda prompt: prompt.name)
def test_the_example_keeps_the_bounds_and_half_of_the_answers_length(prompt: Prompt[Any, Any]) -> None:
    assert len(prompt.example) / CHARS_PER_TOKEN < prompt.max_answer_tokens / 2


@pytest.mark.parametrize("prompt", SHAPED, ids=lambda prompt: prompt.name)
def test_names_and_sentences_of_examples_cannot_be_those_of_a_repository(prompt: Prompt[Any, Any]) -> None:
    example = json.loads(prompt.example)
    for key, text in texts(example):
        is_step = key == "id" and text in {"s1", "s2"}
        assert key in FREE_KEYS or is_step or MARK in text.casefold(), text


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt.name)
def test_sections_stand_one_blank_line_apart(prompt: Prompt[Any, Any]) -> None:
    inputs = INPUTS[prompt.name]
    rendered = prompt.render(replace(inputs, diff="+a\n") if hasattr(inputs, "diff") else inputs)
    assert "\n\n\n" not in rendered.replace(prompt.example, "the example")


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt.name)
def test_an_answer_that_is_the_example_is_refused_where_it_says_anything(prompt: Prompt[Any, Any]) -> None:
    assert not isinstance(prompt.parse(prompt.example), ParseFault)
    asked = prompt.render(INPUTS[prompt.name])
    read, _ = prompt.read(prompt.example, (), asked=asked)
    if MARK in prompt.example:
        assert isinstance(read, ParseFault)
        assert read.kind == "copied"
        assert MARK not in read.fault
        # A repository about the same thing is not suspected.
        assert not isinstance(prompt.read(prompt.example, (), asked=f"{asked}\n{MARK}.py")[0], ParseFault)
    else:
        assert read == prompt.parse(prompt.example)
