"""Copies of an example are known by its words, and closed while they come."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testing.client.memory_sink import MemorySink
from testing.client.model_client import COLOUR, Note, model_client, models_config
from testing.servers.ollama_script import Answer, ChatCall
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import OpenAiServer

from clean_room_agent.llm.config import ModelsConfig
from clean_room_agent.llm.copied_examples import COPIED, MARK, OPENING_CHARS, CopyGuard, mentions, opening_of
from clean_room_agent.llm.transports.factory import connect

EXAMPLE = '{"name": "the brown of a quokka in the evening sun of its first summer", "shades": [1, 2]}'
PAINTED = replace(COLOUR, example=EXAMPLE, template=f"{COLOUR.template}\nExample: {{{{ example }}}}")
COPY = EXAMPLE.replace('": "', '":\n  "') + " and so on" * 500


@given(st.lists(st.text(alphabet=' \n{"quoka', max_size=9)), st.sampled_from(["", opening_of(EXAMPLE), "qu"]))
def test_a_copy_is_known_however_it_comes_in_pieces(pieces: list[str], opening: str) -> None:
    guard = CopyGuard(opening)
    for piece in pieces:
        guard.feed(piece)
    whole = "".join("".join(pieces).split())
    assert guard.tripped is (bool(opening) and whole.startswith(opening))


@given(st.lists(st.text(alphabet="quokKa ", max_size=9)))
def test_free_text_copies_wherever_it_speaks_of_the_zoo(pieces: list[str]) -> None:
    guard = CopyGuard(MARK)
    for piece in [*pieces, "", *'<edit file="a.py" symbol="Quo']:
        guard.feed(piece)
    assert guard.tripped is mentions("".join(pieces))
    for piece in ("kkaPen", ".open"):
        guard.feed(piece)
    assert guard.tripped


def test_an_example_without_the_zoo_in_its_beginning_closes_nothing() -> None:
    assert opening_of('{"name": "red"}') == ""
    assert opening_of(" " * 9 + "x" * OPENING_CHARS + "quokka") == ""
    assert len(opening_of(EXAMPLE)) == OPENING_CHARS


def answer(call: ChatCall) -> Answer:
    return Answer(text='{"name": "blue"}' if "An earlier answer" in call.prompt else COPY)


@pytest.fixture(params=["ollama", "openai"])
def config(request: pytest.FixtureRequest) -> Iterator[ModelsConfig]:
    kind = OllamaServer if request.param == "ollama" else OpenAiServer
    with kind(answer) as started:
        yield models_config(started.base_url, provider=request.param)


def test_a_copy_is_closed_and_asked_again(config: ModelsConfig) -> None:
    sink = MemorySink()
    client = model_client(connect(config), sink, config=config)
    reply = client.ask(PAINTED, Note(text="the sky"), pass_id="t:p", max_answer_tokens=2500)
    first, second = sink.asked()
    assert (first.ending.finish, second.ending.finish) == ("copied", "stop")
    assert len(first.answer.response) < len(EXAMPLE) + 20
    assert sink.readings[0][1:] == ("unreadable", COPIED)
    assert reply.value is not None


def test_where_the_task_is_about_quokkas_no_copy_is_suspected(config: ModelsConfig) -> None:
    sink = MemorySink()
    client = model_client(connect(config), sink, config=config)
    client.ask(PAINTED, Note(text="a quokka"), pass_id="t:p", max_answer_tokens=2500, repair=False)
    assert sink.asked()[0].ending.finish != "copied"
