"""The way of a question to the server, over real connections and by a script."""

import json

import pytest
from testing.client.memory_sink import MemorySink
from testing.client.model_client import SHOUT, Note, Waits, judge_numbers, model_client, models_config
from testing.client.scripted_transport import ScriptedTransport
from testing.servers.ollama_script import Answer, busy
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import OpenAiServer

from clean_room_agent.app import model_server
from clean_room_agent.artifacts.model_calls import CallEvent, CallProgress, ServerAwaited
from clean_room_agent.errors import ServerBusy
from clean_room_agent.llm.model_config import Provider
from clean_room_agent.llm.transports.ollama import connect
from clean_room_agent.llm.transports.replay import resuming

SKY = Note(text="sky")


@pytest.mark.parametrize(
    ("first", "finish"),
    [
        (busy(), "error:ServerBusy"),
        (Answer(close="before_headers"), "error:ServerUnreachable"),
        (Answer(close="before_token"), "error:ServerUnreachable"),
    ],
)
def test_what_is_safe_to_repeat_is_repeated_with_growing_waits(first: Answer, finish: str) -> None:
    sink, waits = MemorySink(), Waits()
    with OllamaServer([first, first, "hello"]) as server:
        config = models_config(server.base_url, retries=2)
        client = model_client(connect(config), sink, config=config, waits=waits)
        reply = client.ask(SHOUT, SKY, pass_id="t:p")
    assert (reply.value, reply.attempts) == ("HELLO", 3)
    assert waits.seconds == [0.5, 1.0]
    assert [(call.site.attempt, call.ending.finish) for call in sink.asked()] == [
        (0, finish),
        (1, finish),
        (2, "stop"),
    ]


def test_a_busy_server_is_waited_for_as_long_as_for_an_answer() -> None:
    waits, told = Waits(), list[CallEvent]()
    with OllamaServer(lambda _: busy()) as server:
        config = models_config(server.base_url, retries=0, timeouts={"first_byte": 20})
        client = model_client(connect(config), MemorySink(), config=config, waits=waits, watch=told.append)
        with pytest.raises(ServerBusy):
            client.ask(SHOUT, SKY, pass_id="t:p")
    assert waits.seconds == [0.5, 1.0, 2.0, 4.0, 8.0]
    (awaited,) = [event for event in told if isinstance(event, ServerAwaited)]
    assert awaited.said.startswith(f"{server.base_url} is busy: server busy")


def test_no_more_requests_are_under_way_than_configured() -> None:
    sink = MemorySink()
    with OllamaServer(lambda _: Answer(text="yes", peers=3)) as server:
        config = models_config(server.base_url, parallel=3)
        client = model_client(connect(config), sink, config=config)
        replies = judge_numbers(client, range(12))
        assert server.peak == 3
    assert [sink.calls[reply.call_id - 1].site.item for reply in replies] == [str(n) for n in range(12)]


def test_attempts_are_counted_for_each_pass_prompt_and_item() -> None:
    transport = ScriptedTransport(["x"] * 5)
    client = model_client(transport, MemorySink())
    for pass_id, item in [("t:p", ""), ("t:p", ""), ("t:q", ""), ("t:p", "i"), ("t:p", "")]:
        client.ask(SHOUT, SKY, pass_id=pass_id, item=item)
    identities = [str(request.identity) for request in transport.requests]
    assert identities == [
        "pass p, prompt shout, attempt 0",
        "pass p, prompt shout, attempt 1",
        "pass q, prompt shout, attempt 0",
        "pass p, prompt shout, item i, attempt 0",
        "pass p, prompt shout, attempt 2",
    ]


@pytest.mark.parametrize("provider", ["ollama", "openai"])
def test_a_call_that_ctrl_c_interrupts_is_recorded_with_what_had_come(provider: Provider) -> None:
    pieces = 0

    def press(event: CallEvent) -> None:
        nonlocal pieces
        pieces += isinstance(event, CallProgress) and len(sink.asked()) == 0
        if pieces == 3:
            raise KeyboardInterrupt

    sink = MemorySink()
    answer = Answer(text="one two three four", piece_chars=4)
    with (OllamaServer if provider == "ollama" else OpenAiServer)([answer, "again"]) as server:
        config = models_config(server.base_url, provider=provider)
        asked = model_server.connect(config)
        # The probe, which is refused, gives no pieces.
        with pytest.raises(KeyboardInterrupt):
            model_client(asked, sink, config=config, watch=press).ask(SHOUT, SKY, pass_id="t:p")
        (call,) = sink.asked()
        assert (call.answer.response, call.ending.finish) == ("one two thre", "error:CallInterrupted")
        assert json.loads(call.request.request_body)
        resumed = model_client(resuming(sink.calls, asked), MemorySink(), config=config)
        assert resumed.ask(SHOUT, SKY, pass_id="t:p").value == "AGAIN"
