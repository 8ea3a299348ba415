"""Every fault of a server of OpenAI's API: what the caller sees, and what the record holds."""

import pytest
from testing.client.memory_sink import MemorySink
from testing.client.model_client import SHOUT, Note, Waits, model_client, models_config
from testing.servers.faults import COMMON, IMPATIENT, LONG, Fault, check_fault
from testing.servers.ollama_script import Answer
from testing.servers.openai_server import WINDOW, Kind, OpenAiServer, shout_of

from clean_room_agent.errors import (
    ModelNotFound,
    ServerBusy,
    ServerFailed,
    ServerTimeout,
    ServerUnreachable,
    TruncatingServer,
    WindowExceeded,
)
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.transports.openai import connect

SKY = Note(text="sky")
MANY = Note(text="zqxjkvbp " * 2700)


FAULTS = {
    **COMMON,
    "error before the stream": Fault(
        answer=Answer(status=500, error="CUDA out of memory"),
        error=ServerFailed,
        said="coder:3b at http://127.0.0.1:{port} failed with status 500: CUDA out of memory",
        hint="a smaller model or context_window needs less memory",
    ),
    "request refused": Fault(
        answer=Answer(status=400, error="response_format is not known"),
        error=ServerFailed,
        said="status 400: response_format is not known",
        hint="schema_dialect, logprobs and extra_body",
    ),
    "request found invalid": Fault(
        answer=Answer(status=500, error="1 validation error: body, response_format, type"),
        error=ServerFailed,
        said="1 validation error",
        hint="schema_dialect",
    ),
    "key refused": Fault(
        answer=Answer(status=401, error="Unauthorized"),
        error=ServerFailed,
        said="status 401",
        hint="set api_key_env",
    ),
    "error in the stream": Fault(
        answer=Answer(text=LONG, error="EngineCore encountered an issue"),
        error=ServerFailed,
        said="failed in the middle of its answer: EngineCore",
        hint="log says more",
        kept="abcdefgh abcdefgh",
    ),
    "stream without an end": Fault(
        answer=Answer(text="ha ha ha ha", no_end=True),
        error=ServerFailed,
        said="the stream ended before its end marker",
        hint="may have died",
        kept="ha ha ha ha",
    ),
    "empty stream": Fault(
        answer=Answer(no_end=True),
        error=ServerUnreachable,
        said="before the first token",
        hint="streaming = false in [models] makes it say why",
    ),
    "abrupt close in a line": Fault(
        answer=Answer(text=LONG, close="in_line"),
        error=ServerFailed,
        said="broke off in the middle",
        hint="may have died",
        kept="abcdefgh",
    ),
    "loading": Fault(
        answer=Answer(status=503, error="Loading model"),
        error=ServerBusy,
        said="is busy: Loading model",
        hint="lower parallel",
    ),
    "too many requests": Fault(
        answer=Answer(status=429, error="slow down"),
        error=ServerBusy,
        said="is busy: slow down",
        hint="more slots",
    ),
    "silence in the answer": Fault(
        answer=Answer(text=LONG, pause_seconds=60),
        error=ServerTimeout,
        said="fell silent for 0.2 s",
        hint="raise idle",
    ),
    "ended for another reason": Fault(
        answer=Answer(text="half", done_reason="abort"),
        error=ServerFailed,
        said="with the reason 'abort'",
        hint="memory",
        kept="half",
    ),
    "something else than a model server": Fault(
        answer=Answer(raw_body="<html>Welcome</html>"),
        error=ServerFailed,
        said="does not speak OpenAI's protocol",
        hint="/v1/chat/completions",
    ),
    "events of something else": Fault(
        answer=Answer(raw_body="data: tick\n\n"),
        error=ServerFailed,
        said="does not speak OpenAI's protocol",
        hint="/v1/chat/completions",
    ),
}


def client_of(
    server: OpenAiServer, sink: MemorySink, waits: Waits | None = None, **fields: object
) -> ModelClient:
    config = models_config(server.base_url, provider="openai", **fields)
    return model_client(connect(config), sink, config=config, waits=waits)


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_is_an_error_with_a_remedy_and_a_row_with_what_came(name: str) -> None:
    fault = FAULTS[name]
    sink = MemorySink()
    with OpenAiServer([fault.answer]) as server:
        client = client_of(server, sink, timeouts=IMPATIENT)
        with pytest.raises(fault.error) as caught:
            client.ask(SHOUT, SKY, pass_id="t:p", max_answer_tokens=500)
        assert len(server.calls) == 1
        sent = server.requests[-1]
    check_fault(fault, caught, sink, base_url=server.base_url, sent=sent)
    assert (sink.calls[0].model.provider, sink.calls[0].model.digest) == ("openai", "")


def test_a_model_that_the_server_does_not_list_is_told_before_any_prompt_is_sent() -> None:
    sink = MemorySink()
    with OpenAiServer(["x"]) as server:
        with pytest.raises(ModelNotFound) as caught:
            client_of(server, sink, coding="coder:7b").ask(SHOUT, SKY, pass_id="t:p")
        assert server.requests == []
    assert caught.value.message == f"{server.base_url} does not have the model 'coder:7b'"
    assert "it has: coder:3b, thinker:4b" in caught.value.hint
    assert "ollama" not in caught.value.hint.lower()


@pytest.mark.parametrize("streaming", [True, False])
def test_text_thinking_counts_and_the_end_are_read_either_way(streaming: bool) -> None:
    sink = MemorySink()
    with OpenAiServer([Answer(text="done", thinking="Hm.")]) as server:
        reply = client_of(server, sink, streaming=streaming).ask(SHOUT, SKY, pass_id="t:p")
        assert server.requests[-1]["stream"] is streaming
    assert (reply.value, reply.finish, reply.completion_tokens) == ("DONE", "stop", 1)
    assert reply.prompt_tokens is not None
    assert sink.asked()[0].answer.thinking == "Hm."


def test_the_key_is_sent_and_stands_nowhere_in_the_record() -> None:
    sink = MemorySink()
    with OpenAiServer(["hello", "again"], key="s3cret-key") as server:
        config = models_config(server.base_url, provider="openai", api_key_env="MODEL_KEY")
        good = model_client(connect(config, key="s3cret-key"), sink, config=config)
        assert good.ask(SHOUT, SKY, pass_id="t:p").value == "HELLO"
        bad = model_client(connect(config, key="s3cret"), sink, config=config)
        with pytest.raises(ServerFailed, match=r"Incorrect API key provided: Bearer \(the key\)"):
            bad.ask(SHOUT, SKY, pass_id="t:p")
    assert "s3cret" not in repr(sink.calls)


REFUSING: tuple[Kind, ...] = ("vllm", "vllm-new", "vllm-old", "llama-server", "lm-studio")


@pytest.mark.parametrize("kind", [*REFUSING, "llama-cpp-python"])
def test_a_prompt_that_is_too_long_is_an_overflow_in_each_servers_words(kind: Kind) -> None:
    sink = MemorySink()
    with OpenAiServer(["x"], kind=kind, counts=False) as server:
        client = client_of(server, sink, streaming=kind != "llama-cpp-python")
        with pytest.raises(WindowExceeded, match="as too long for coder:3b") as caught:
            client.ask(SHOUT, MANY, pass_id="t:p")
        assert server.calls == []
    assert "its window of 4096" in caught.value.message
    assert [call.ending.finish for call in sink.calls] == ["error:WindowExceeded"] * 2


@pytest.mark.parametrize("kind", ["vllm", "vllm-old"])
def test_where_prompt_and_answer_together_are_refused_the_answer_is_made_shorter_once(kind: Kind) -> None:
    sink = MemorySink()
    with OpenAiServer(["x"], kind=kind, counts=False) as server:
        reply = client_of(server, sink).ask(SHOUT, shout_of(WINDOW - 30), pass_id="t:p", max_answer_tokens=40)
        packages = [body["max_tokens"] for body in server.requests[1:]]
    assert reply.value == "X"
    assert packages[0] == 40
    assert len(packages) == 2
    assert packages[1] in {30, 31}
    assert [call.ending.finish for call in sink.asked()] == ["error:WindowExceeded", "stop"]
    assert reply.attempts == 2


@pytest.mark.parametrize("kind", ["vllm", "llama-server"])
def test_a_server_that_can_count_is_asked_before_a_prompt_is_sent_that_may_not_fit(kind: Kind) -> None:
    sink = MemorySink()
    with OpenAiServer(lambda _: "x", kind=kind) as server:
        client = client_of(server, sink)
        client.ask(SHOUT, SKY, pass_id="t:p", max_answer_tokens=40)
        assert "/tokenize" not in server.state.paths, "what fits by far is not counted"
        client.ask(SHOUT, shout_of(WINDOW - 50), pass_id="t:p", max_answer_tokens=40)
        client.ask(SHOUT, shout_of(WINDOW - 30), pass_id="t:p", max_answer_tokens=40)
        with pytest.raises(
            WindowExceeded, match=r"by the server's count, and 40 are for its answer"
        ) as caught:
            client.ask(SHOUT, shout_of(WINDOW - 10), pass_id="t:p", max_answer_tokens=40)
        packages = [body["max_tokens"] for body in server.requests[1:]]
    assert packages[:2] == [40, 40]
    assert packages[2:] in ([30], [31])
    assert "reserved_tokens" in caught.value.hint
    assert [call.ending.finish for call in sink.asked()] == ["stop"] * 3


@pytest.mark.parametrize("kind", ["silent", "mute"])
def test_a_server_that_does_not_refuse_is_refused_before_the_first_question(kind: Kind) -> None:
    sink = MemorySink()
    with (
        OpenAiServer(lambda _: "x", kind=kind) as server,
        pytest.raises(TruncatingServer, match="it silently truncates long prompts"),
    ):
        client_of(server, sink).ask(SHOUT, SKY, pass_id="t:p")
    assert sink.asked() == []


@pytest.mark.parametrize("kind", ["vllm", "llama-server", "lm-studio"])
def test_a_smaller_window_than_configured_is_found_without_a_prompt(kind: Kind) -> None:
    with OpenAiServer(["x"], kind=kind, window=1024) as server:
        with pytest.raises(WindowExceeded, match="with a window of 1024 tokens, not the configured 4096"):
            client_of(server, MemorySink()).ask(SHOUT, SKY, pass_id="t:p")
        assert server.requests == []


@pytest.mark.parametrize("kind", ["vllm", "llama-server", "lm-studio", "llama-cpp-python"])
def test_a_larger_window_than_configured_is_probed_at_its_own_end_or_read_whole(kind: Kind) -> None:
    sink = MemorySink()
    with OpenAiServer(lambda _: "x", kind=kind, window=20_000) as server:
        client = client_of(server, sink, streaming=kind != "llama-cpp-python")
        assert client.ask(SHOUT, SKY, pass_id="t:p").value == "X"
    probes = [call for call in sink.calls if call.site.call_type == "window_probe"]
    refused = kind != "llama-cpp-python"
    assert [call.ending.finish for call in probes] == ["error:WindowExceeded" if refused else "stop"]
