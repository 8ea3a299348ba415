import json
from typing import Any

import pytest
from inline_snapshot import snapshot
from msgspec.structs import replace

from clean_room_agent.enrichment.prompt import ENRICHMENT, EnrichmentAnswer, EnrichmentInputs, shortened
from clean_room_agent.llm.answers import ParseFault

INPUTS = EnrichmentInputs(
    path="till/money.py",
    language="python",
    lines=2,
    imports=("till/coins.py",),
    imported_by=("till/receipt.py", "tests/test_money.py"),
    commits=("Round <half> up",),
    outline=("def split(cents):\n    The shares.",),
    text="def split(cents):\n    return cents",
    remark="",
)
RIGHT: dict[str, Any] = {
    "complexity_notes": "",
    "concepts": ["a"],
    "domain": "d",
    "module": "m",
    "public_api_surface": [],
    "purpose": "p",
}


def parsed(**changes: object) -> EnrichmentAnswer | ParseFault:
    return ENRICHMENT.parse(json.dumps({**RIGHT, **changes}))


def read(**changes: object) -> EnrichmentAnswer:
    answer = parsed(**changes)
    assert isinstance(answer, EnrichmentAnswer), answer
    return answer


def test_the_prompt_shows_what_is_known_and_asks_last() -> None:
    assert ENRICHMENT.render(INPUTS) == snapshot("""\
# Instructions: Describe a file

You describe one file of a code base, for programmers who look for the right file to read or to change.

Rules:
- complexity_notes: what is hard to see or easy to break in this file, in one or two sentences. Empty if there is nothing.
- concepts: the ideas that the file is about, as a programmer would search for them. One to three words each. At most 8.
- domain: the field that the file serves, in one or two lower-case words, like "authentication" or "date parsing". For a test, the field that it tests.
- module: the component that the file belongs to, as a rule the name of its folder or package.
- public_api_surface: names that other files are meant to use, like "parse" or "Parser.feed". At most 20. Empty if there are none.
- purpose: what the file is for, in one or two sentences. Begin with a verb. Do not repeat the path.
- Say only what the text below shows. Do not praise and do not guess.
- Answer with one JSON object and nothing else.

Example answer:
{"complexity_notes": "Quokkas are weighed before they are fed; the order must not change.", "concepts": ["quokka", "quokka feeding"], "domain": "quokka keeping", "module": "quokka_zoo", "public_api_surface": ["count_quokkas", "QuokkaPen.open"], "purpose": "Keep the quokkas of a pen and reckon what they eat in a day."}

## File
till/money.py (python, 2 lines)

## Files that it imports
- till/coins.py

## Files that import it
- till/receipt.py
- tests/test_money.py

## Newest changes to it
- Round <half> up

## What it defines
def split(cents):
    The shares.

## Its text
<text>
def split(cents):
    return cents
</text>

What is till/money.py for? Answer with the JSON object.\
""")


def test_what_is_not_there_is_not_shown() -> None:
    empty = EnrichmentInputs(
        path="a.md",
        language="markdown",
        lines=0,
        imports=(),
        imported_by=(),
        commits=(),
        outline=(),
        text="",
        remark="it cannot be shown: binary",
    )
    assert ENRICHMENT.render(empty).partition("## File\n")[2] == snapshot("""\
a.md (markdown)

## Its text
(it cannot be shown: binary)

What is a.md for? Answer with the JSON object.\
""")


@pytest.mark.parametrize(
    ("said", "concepts"),
    [
        (["Cookie ", "", "HTTP"], ("cookie", "http")),
        ("cookie, Session", ("cookie", "session")),
        (None, ()),
        ([1, "a"], ("a",)),
    ],
)
def test_concepts_are_lower_case_words_however_they_are_written(said: object, concepts: object) -> None:
    assert read(concepts=said).concepts == concepts


def test_null_is_nothing_and_white_space_goes() -> None:
    answer = read(complexity_notes=None, module=None, public_api_surface=None, purpose="  Keep it. ")
    assert (answer.complexity_notes, answer.module, answer.public_api_surface) == ("", "", ())
    assert answer.purpose == "Keep it."


def test_names_keep_their_case() -> None:
    assert read(public_api_surface=["Parser.feed"]).public_api_surface == ("Parser.feed",)


def test_a_domain_is_lower_case() -> None:
    assert read(domain="Date Parsing").domain == "date parsing"


@pytest.mark.parametrize(
    "changes", [{"purpose": "  "}, {"purpose": None}, {"concepts": 3}, {"domain": ["a"]}]
)
def test_broken_answers_are_values(changes: dict[str, object]) -> None:
    assert isinstance(parsed(**changes), ParseFault)


@pytest.mark.parametrize("key", sorted(RIGHT))
def test_no_key_may_be_missing(key: str) -> None:
    text = json.dumps({name: value for name, value in RIGHT.items() if name != key})
    assert isinstance(ENRICHMENT.parse(text), ParseFault)


def test_keys_stand_in_the_order_in_which_servers_sort_them() -> None:
    names = list(EnrichmentAnswer.model_fields)
    assert names == sorted(names)


LINES = (
    "def add():",
    "    '''Adds.",
    "",
    "    Slowly.'''",
    "",
    "class Cart:",
    "    def total():",
    "        pass",
)
WHOLE = replace(
    INPUTS, lines=len(LINES), outline=("def add():", "class Cart:", "    def total():"), text="\n".join(LINES)
)


def measure(inputs: EnrichmentInputs) -> int:
    return len(ENRICHMENT.render(inputs))


def test_what_fits_is_shown_whole() -> None:
    assert shortened(WHOLE, measure(WHOLE), measure) == WHOLE


def test_of_a_text_that_does_not_fit_the_first_lines_are_shown() -> None:
    short = shortened(WHOLE, measure(WHOLE) - 1, measure)
    assert short.text == "\n".join(LINES[:2])
    assert short.outline == WHOLE.outline
    assert short.remark == "the first 2 of 8 lines; the rest does not fit"


def test_of_a_longer_outline_the_first_definitions_are_shown() -> None:
    bare = replace(WHOLE, text="", remark="it is too long to be shown")
    assert shortened(WHOLE, measure(bare) - 1, measure) == replace(bare, outline=("def add():",))
    assert shortened(WHOLE, 0, measure).outline == ()
