"""Prompts beyond the window, in the three ways in which servers meet them."""

import pytest
from testing.client.memory_sink import MemorySink
from testing.client.model_client import COLOUR, SHOUT, Colour, Note, model_client, models_config
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.errors import TruncatingServer, WindowExceeded
from clean_room_agent.llm.transports.ollama import connect

SKY = Note(text="sky")


@pytest.mark.parametrize("overflow", ["plain", "json"])
def test_a_server_that_refuses_long_prompts_is_probed_once_for_each_model(overflow: str) -> None:
    sink = MemorySink()
    with OllamaServer(
        lambda _: '{"name": "blue"}', overflow="json" if overflow == "json" else "plain"
    ) as server:
        client = model_client(connect(models_config(server.base_url)), sink)
        for prompt in (COLOUR, COLOUR):
            assert client.ask(prompt, SKY, pass_id="t:p").value == Colour(name="blue")
        assert len(server.requests) == 3
        assert client.probe("coding", pass_id="t:check").refused
    assert [call.site.call_type for call in sink.calls] == [
        "window_probe",
        "colour",
        "colour",
        "window_probe",
    ]
    assert (sink.calls[0].ending.finish, sink.calls[0].site.item) == ("error:WindowExceeded", "thinker:4b")


@pytest.mark.parametrize(
    ("overflow", "said"),
    [("plain", "refused a prompt as too long"), ("json", "tokens as too long for coder:3b: it exceeds")],
)
def test_a_prompt_that_was_estimated_too_short_is_refused_and_recorded(overflow: str, said: str) -> None:
    sink = MemorySink()
    with OllamaServer(["x"], overflow="json" if overflow == "json" else "plain") as server:
        client = model_client(connect(models_config(server.base_url)), sink)
        with pytest.raises(WindowExceeded, match=said) as caught:
            client.ask(SHOUT, Note(text="zqxjkvbp " * 2700), pass_id="t:p")
    assert "reserved_tokens" in caught.value.hint
    assert sink.asked()[0].ending.finish == "error:WindowExceeded"


def test_a_server_with_a_smaller_window_than_configured_is_found_by_the_probe() -> None:
    with OllamaServer(["x"], overflow="json", largest_window=1024) as server:
        client = model_client(connect(models_config(server.base_url)), MemorySink())
        with pytest.raises(
            WindowExceeded, match="with a window of 1024 tokens, not the configured 4096"
        ) as caught:
            client.ask(SHOUT, SKY, pass_id="t:p")
    assert "context_window = 1024" in caught.value.hint


def test_a_server_that_cuts_in_silence_is_refused_before_the_first_question() -> None:
    sink = MemorySink()
    with OllamaServer(lambda _: "x", overflow="silent") as server:
        client = model_client(connect(models_config(server.base_url)), sink)
        with pytest.raises(TruncatingServer, match="it silently truncates long prompts") as caught:
            client.ask(SHOUT, SKY, pass_id="t:p")
    assert "allow_truncating_server = true" in caught.value.hint
    assert sink.asked() == []
    assert sink.calls[0].ending.finish in {"stop", "length"}


def test_a_server_that_refused_the_probe_and_cuts_later_is_found_by_its_count() -> None:
    sink = MemorySink()
    with OllamaServer(lambda _: "fine") as server:
        client = model_client(connect(models_config(server.base_url)), sink)
        assert client.ask(SHOUT, SKY, pass_id="t:p").value == "FINE"
        server.overflow = "silent"
        with pytest.raises(TruncatingServer, match="it truncated the prompt"):
            client.ask(SHOUT, Note(text="zqxjkvbp " * 2700), pass_id="t:p")
    assert [call.ending.finish for call in sink.asked()] == ["stop", "error:TruncatingServer"]


def test_a_server_that_is_allowed_to_cut_is_watched_at_every_call() -> None:
    sink = MemorySink()
    with OllamaServer(lambda _: "fine", overflow="silent") as server:
        config = models_config(server.base_url, allow_truncating_server=True)
        client = model_client(connect(config), sink, config=config)
        assert client.ask(SHOUT, SKY, pass_id="t:p").value == "FINE"
        with pytest.raises(
            TruncatingServer, match=r"read 4096 tokens of a prompt of at least .* it truncated the prompt"
        ):
            client.ask(SHOUT, Note(text="zqxjkvbp " * 2700), pass_id="t:p")
    assert [call.ending.finish for call in sink.asked()] == ["stop", "error:TruncatingServer"]
