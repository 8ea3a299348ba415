import subprocess
import sys
from typing import Any

import pytest
from msgspec.structs import replace
from testing.client.memory_sink import MemorySink
from testing.client.model_client import (
    COLOUR,
    NOW,
    RELEVANT,
    SHOUT,
    Colour,
    Note,
    judge_numbers,
    model_client,
    models_config,
)
from testing.client.scripted_transport import ScriptedTransport

from clean_room_agent.artifacts.model_calls import CallEvent, CallFinished, CallStarted, CallUnreadable
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.llm.answer_rules import at_most
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.transport import ChatRequest, RawAnswer, Sampling

SKY = Note(text="sky")
COPIED = '{"name": "quokka brown", "shades": [3]}'
SHOWS_EXAMPLE = replace(COLOUR, example=COPIED, template=f"{COLOUR.template}\nExample: {{{{ example }}}}")


def setup(*answers: str | RawAnswer, **config: Any) -> tuple[ModelClient, ScriptedTransport, MemorySink]:
    transport, sink = ScriptedTransport(answers), MemorySink()
    return model_client(transport, sink, config=models_config(**config)), transport, sink


def cut(text: str) -> RawAnswer:
    return RawAnswer(request_body="{}", text=text, finish="length")


def test_a_good_answer_is_recorded_then_read() -> None:
    client, transport, sink = setup('{"name": "blue"}')
    reply = client.ask(COLOUR, SKY, pass_id="t:meta_plan", stage="scope", item="x")
    assert (reply.value, reply.bad, reply.call_id, reply.attempts) == (Colour(name="blue"), None, 1, 1)
    call = sink.calls[0]
    assert (call.site.pass_id, call.site.call_type, call.site.stage_name, call.site.item) == (
        "t:meta_plan",
        "colour",
        "scope",
        "x",
    )
    assert (call.model.tag, call.model.provider, call.model.role, call.site.attempt) == (
        "thinker:4b",
        "scripted",
        "reasoning",
        0,
    )
    assert call.request.prompt == COLOUR.render(SKY) == transport.requests[0].prompt
    assert call.request.system_prompt == COLOUR.system
    assert (call.ending.finish, call.ending.error, call.cost.timestamp, call.answer.response) == (
        "stop",
        "",
        NOW,
        '{"name": "blue"}',
    )
    assert call.cost.estimated_tokens == client.measure(COLOUR, SKY)
    assert sink.readings == [(1, "parsed", "")]


def test_the_record_is_durable_before_the_answer_is_read() -> None:
    sink = MemorySink()
    seen: list[int] = []

    class Watching(ScriptedTransport):
        def send(self, request: ChatRequest) -> RawAnswer:
            seen.append(len(sink.readings))
            return super().send(request)

    model_client(Watching(["nothing", "nothing"]), sink).ask(COLOUR, SKY, pass_id="t")
    assert seen == [0, 1]
    assert len(sink.calls) == 2


def test_a_bad_answer_is_repaired_once_in_a_prompt_that_shows_its_fault() -> None:
    client, transport, sink = setup('{"shade": 1}', '{"name": "blue"}')
    reply = client.ask(COLOUR, SKY, pass_id="t:p")
    assert reply.value == Colour(name="blue")
    assert (reply.call_id, reply.attempts) == (2, 2)
    repair = transport.requests[1]
    assert repair.prompt.startswith(transport.requests[0].prompt)
    assert '> {"shade": 1}' in repair.prompt
    assert "name: Field required" in repair.prompt
    assert repair.schema == COLOUR.schema
    assert [call.site.attempt for call in sink.calls] == [0, 1]
    assert sink.readings == [(1, "unreadable", "name: Field required"), (2, "repaired", "")]


def test_an_answer_that_stays_bad_is_a_value_and_not_an_exception() -> None:
    client, _, sink = setup("one", "two")
    reply = client.ask(COLOUR, SKY, pass_id="t:p")
    assert reply.value is None
    assert reply.bad is not None
    assert (reply.bad.kind, reply.text, reply.call_id) == ("not_json", "two", 2)
    assert [reading for _, reading, _ in sink.readings] == ["unreadable", "unreadable"]


def test_a_model_that_copied_is_shown_no_example_in_the_rest_of_the_pass() -> None:
    answers = (COPIED, *['{"name": "blue", "shades": [1]}'] * 2)
    client, transport, _ = setup(*answers, reasoning="small")
    for pass_id in ("t:p", "t:p", "t:q"):
        client.ask(SHOWS_EXAMPLE, SKY, pass_id=pass_id, repair=False)
    assert ["quokka" in request.prompt for request in transport.requests] == [True, False, True]


def test_a_model_that_copied_in_an_earlier_pass_is_shown_no_example() -> None:
    transport, sink = ScriptedTransport(['{"name": "blue"}'] * 2), MemorySink()
    config = models_config(reasoning="small")
    earlier = {"t:later": ("small",)}
    client = model_client(transport, sink, config=config, copiers=lambda pass_id: earlier.get(pass_id, ()))
    for pass_id in ("t:first", "t:later"):
        client.ask(SHOWS_EXAMPLE, SKY, pass_id=pass_id)
    assert ["quokka" in request.prompt for request in transport.requests] == [True, False]


def test_a_verdict_is_held_to_its_words_where_the_server_takes_a_grammar() -> None:
    client, transport, _ = setup("yes")
    client.ask(RELEVANT, SKY, pass_id="t:p")
    assert transport.requests[0].grammar == 'root ::= "yes" | "Yes" | "no" | "No"\n'
    assert transport.requests[0].schema is None


def test_no_repair_is_made_where_it_is_not_wanted() -> None:
    client, transport, _ = setup("one")
    assert client.ask(COLOUR, SKY, pass_id="t:p", repair=False).bad is not None
    assert len(transport.requests) == 1


def test_a_cut_object_is_asked_for_again_shorter() -> None:
    client, transport, sink = setup(cut('{"name": "bl'), '{"name": "blue"}')
    assert client.ask(COLOUR, SKY, pass_id="t:p").value == Colour(name="blue")
    assert "at most 64 tokens" in transport.requests[1].prompt
    assert sink.calls[0].ending.finish == "length"
    assert sink.readings[0] == (1, "unreadable", "the answer was cut off after 64 tokens")


def test_after_a_cut_object_the_server_holds_the_repair_to_less() -> None:
    shades = replace(COLOUR, narrow=lambda schema, _: at_most(schema, "shades", 99))
    client, transport, _ = setup(cut('{"name": "bl'), '{"name": "blue"}')
    client.ask(shades, SKY, pass_id="t:p")
    bounds = [(request.schema or {})["properties"]["shades"]["maxItems"] for request in transport.requests]
    assert bounds == [99, 1]


def test_a_cut_text_is_truncated_and_not_repaired() -> None:
    client, transport, _ = setup(cut("HALF AN ED"))
    reply = client.ask(SHOUT, SKY, pass_id="t:p")
    assert reply.bad is not None
    assert (reply.bad.kind, reply.finish, reply.value) == ("truncated", "length", None)
    assert len(transport.requests) == 1


def test_a_repair_that_would_not_fit_the_window_is_not_sent() -> None:
    transport, sink = ScriptedTransport(["\n".join(["word " * 40] * 20)]), MemorySink()
    client = model_client(transport, sink, window=300)
    reply = client.ask(COLOUR, SKY, pass_id="t:p")
    assert reply.bad is not None
    assert len(transport.requests) == 1


def test_a_prompt_beyond_the_window_is_refused_before_anything_is_sent() -> None:
    client, transport, sink = setup("x")
    with pytest.raises(WindowExceeded) as caught:
        client.ask(COLOUR, Note(text="word " * 4000), pass_id="t:p")
    need = client.measure(COLOUR, Note(text="word " * 4000))
    assert caught.value.message == (
        f"prompt colour needs about {need} tokens and 64 for its answer; thinker:4b has a window of 4096"
    )
    assert caught.value.exit_code == 3
    assert (transport.requests, sink.calls) == ([], [])


def test_configuration_bounds_the_answer_and_sets_the_draw() -> None:
    client, transport, _ = setup("a", "b", "c", max_tokens={"coding": 9}, temperature={"coding": 0.5})
    client.ask(SHOUT, SKY, pass_id="t:p")
    client.ask(
        SHOUT, SKY, pass_id="t:p", max_answer_tokens=5, sampling=Sampling(temperature=1.0, seed=7, top_k=0)
    )
    first, second = transport.requests
    assert (first.max_tokens, first.sampling) == (9, Sampling(temperature=0.5, top_k=40, top_p=0.95))
    assert (second.max_tokens, second.sampling.seed) == (5, 7)


def test_answers_come_in_the_order_of_their_items_the_unreadable_among_them() -> None:
    def script(request: ChatRequest) -> str:
        number = int(request.identity.item)
        return "perhaps" if number % 5 == 0 else "yes" if number % 2 else "no"

    transport, sink = ScriptedTransport(script), MemorySink()
    client = model_client(transport, sink, config=models_config(parallel=4))
    replies = judge_numbers(client, range(20), stage="scope")
    assert [reply.value and reply.value.word for reply in replies] == [
        None if n % 5 == 0 else "yes" if n % 2 else "no" for n in range(20)
    ]
    assert [n for n, reply in enumerate(replies) if reply.bad and reply.bad.kind == "not_a_verdict"] == [
        0,
        5,
        10,
        15,
    ]
    for number, reply in enumerate(replies):
        assert sink.calls[reply.call_id - 1].site.item == str(number)
    assert len(transport.requests) == 24


def test_two_items_with_one_key_are_a_mistake() -> None:
    client, _, _ = setup()
    with pytest.raises(ValueError, match="same key"):
        judge_numbers(client, [1, 1])


def test_the_client_loads_no_http_library() -> None:
    code = "import sys, clean_room_agent.llm.client; sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_whoever_watches_is_told_of_each_call_and_of_answers_of_no_use() -> None:
    told: list[CallEvent] = []
    answers = ["no colour", '{"name": "blue", "shades": [7]}']
    client = model_client(ScriptedTransport(answers), MemorySink(), watch=told.append)
    client.ask(COLOUR, SKY, pass_id="t:p", item="sky")
    kinds = [type(event) for event in told]
    assert kinds == [CallStarted, CallFinished, CallUnreadable, CallStarted, CallFinished]
    first, ended, unreadable = told[:3]
    assert isinstance(first, CallStarted)
    assert (first.number, first.prompt, first.item, first.max_tokens) == (1, "colour", "sky", 64)
    assert isinstance(ended, CallFinished)
    assert (ended.number, ended.call_id, ended.ending, ended.recalled) == (1, 1, "stop", False)
    assert isinstance(unreadable, CallUnreadable)
    assert unreadable.call_id == 1
    assert "JSON" in unreadable.fault


@pytest.mark.parametrize(
    ("raw", "kind", "fault"),
    [
        (
            RawAnswer(request_body="{}", thinking="Hm.", completion_tokens=9),
            "empty",
            "all 9 tokens of the answer",
        ),
        (RawAnswer(request_body="{}", thinking="Hm.", finish="length"), "truncated", "the whole answer"),
        (RawAnswer(request_body="{}", text="<think>Hm."), "empty", "the whole answer"),
        (RawAnswer(request_body="{}", text="Hm.</think>\n"), "empty", "the whole answer"),
    ],
)
@pytest.mark.parametrize("prompt", [SHOUT, COLOUR, RELEVANT])
def test_an_answer_of_thoughts_alone_is_said_to_be_that(
    raw: RawAnswer, kind: str, fault: str, prompt: Prompt[Note, object]
) -> None:
    client = model_client(ScriptedTransport([raw]), MemorySink())
    reply = client.ask(prompt, SKY, pass_id="t:p", repair=False)
    assert reply.bad is not None
    assert reply.bad.kind == kind
    assert reply.bad.fault.startswith(f"{fault} went into thinking, and no answer followed")


def test_an_answer_that_calls_a_tool_is_asked_for_again_as_text() -> None:
    called = RawAnswer(request_body="{}", text="[...]", finish="tool_call")
    client, transport, sink = setup(called, "blue")
    assert client.ask(SHOUT, SKY, pass_id="t:p").value == "BLUE"
    assert "the model answered with a tool call" in transport.requests[1].prompt
    assert sink.readings[0][1] == "unreadable"
