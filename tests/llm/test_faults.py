"""Every fault of a real model server: what the caller sees, and what the record holds."""

import pytest
from testing.client.memory_sink import MemorySink
from testing.client.model_client import (
    COLOUR,
    RELEVANT,
    SHOUT,
    Note,
    judge_numbers,
    model_client,
    models_config,
)
from testing.servers.faults import COMMON, IMPATIENT, LONG, Fault, check_fault
from testing.servers.ollama_script import Answer, Answerer, busy
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.errors import (
    DegenerateOutput,
    ModelNotFound,
    ServerBusy,
    ServerFailed,
    ServerTimeout,
    ServerUnreachable,
)
from clean_room_agent.llm.transports.ollama import connect

SKY = Note(text="sky")


FAULTS = {
    **COMMON,
    "error before the stream": Fault(
        answer=Answer(status=500, error="llama runner process has unexpectedly stopped"),
        error=ServerFailed,
        said="coder:3b at http://127.0.0.1:{port} failed with status 500: llama runner process has unexpectedly",
        hint="a smaller model or context_window needs less memory",
    ),
    "request refused": Fault(
        answer=Answer(status=400, error='"coder:3b" does not support chat'),
        error=ServerFailed,
        said="status 400",
        hint="see `cra check`",
    ),
    "host refused": Fault(
        answer=Answer(status=403), error=ServerFailed, said="status 403", hint="use 127.0.0.1"
    ),
    "cancelled": Fault(
        answer=Answer(status=499, error="request cancelled"),
        error=ServerFailed,
        said="cancelled",
        hint="log says more",
    ),
    "error in the stream": Fault(
        answer=Answer(text=LONG, error="an error was encountered while running the model"),
        error=ServerFailed,
        said="failed in the middle of its answer: an error was encountered",
        hint="log says more",
        kept="abcdefgh abcdefgh",
    ),
    "end without done": Fault(
        answer=Answer(text="ha ha ha ha", no_end=True),
        error=DegenerateOutput,
        said="'ha ha ha ha'",
        hint="another seed",
        kept="ha ha ha ha",
    ),
    "abrupt close in a line": Fault(
        answer=Answer(text=LONG, close="in_line"),
        error=ServerFailed,
        said="broke off in the middle",
        hint="may have died",
        kept="abcdefgh abcdefgh",
    ),
    "busy": Fault(
        answer=busy(),
        error=ServerBusy,
        said="server busy, please try again.  maximum pending",
        hint="OLLAMA_MAX_QUEUE",
    ),
    "silence in the answer": Fault(
        answer=Answer(text=LONG, pause_seconds=60),
        error=ServerTimeout,
        said="fell silent for 0.2 s",
        hint="raise idle",
        kept="abcdefgh",
    ),
    "unloaded": Fault(
        answer=Answer(text="half", done_reason="unload"),
        error=ServerFailed,
        said="with the reason 'unload'",
        hint="memory",
        kept="half",
    ),
    "something else than a model server": Fault(
        answer=Answer(raw_body="<html>Welcome</html>"),
        error=ServerFailed,
        said="does not speak Ollama's protocol",
        hint="base_url",
    ),
}


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_is_an_error_with_a_remedy_and_a_row_with_what_came(name: str) -> None:
    fault = FAULTS[name]
    sink = MemorySink()
    with OllamaServer([fault.answer]) as server:
        config = models_config(server.base_url, timeouts=IMPATIENT)
        with pytest.raises(fault.error) as caught:
            model_client(connect(config), sink, config=config).ask(
                SHOUT, SKY, pass_id="t:p", max_answer_tokens=500
            )
        assert len(server.calls) == 1
        sent = server.requests[-1]
    check_fault(fault, caught, sink, base_url=server.base_url, sent=sent)


def test_nobody_listening_is_told_with_the_address_and_recorded() -> None:
    sink = MemorySink()
    config = models_config("http://127.0.0.1:9")
    client = model_client(connect(config), sink, config=config)
    with pytest.raises(
        ServerUnreachable, match=r"no model server answers at http://127\.0\.0\.1:9: "
    ) as caught:
        client.ask(SHOUT, SKY, pass_id="t:p")
    assert "`ollama serve`" in caught.value.hint
    assert sink.calls[0].ending.finish == "error:ServerUnreachable"


def test_a_missing_model_is_told_with_how_to_get_it_and_what_there_is() -> None:
    sink = MemorySink()
    with OllamaServer(["x"]) as server:
        config = models_config(server.base_url, coding="coder:7b")
        with pytest.raises(ModelNotFound) as caught:
            model_client(connect(config), sink, config=config).ask(SHOUT, SKY, pass_id="t:p")
    assert caught.value.message == f"{server.base_url} does not have the model 'coder:7b'"
    assert (
        caught.value.hint
        == "run `ollama pull coder:7b`, or name another one in [models]; it has: coder:3b, thinker:4b"
    )
    assert sink.calls[0].ending.finish == "error:ModelNotFound"


@pytest.mark.parametrize("size", [1, 3, 7])
def test_a_stream_cut_in_lines_and_characters_is_read_whole(size: int) -> None:
    text = "\u8a9e\U0001f600\u00e9 end"
    with OllamaServer([Answer(text=text, chunk_bytes=size, piece_chars=2)]) as server:
        reply = model_client(connect(models_config(server.base_url)), MemorySink()).ask(
            SHOUT, SKY, pass_id="t:p"
        )
    assert reply.text == text


def test_thinking_is_recorded_and_not_read() -> None:
    sink = MemorySink()
    with OllamaServer([Answer(text="Yes", thinking="No, no, no.")]) as server:
        reply = model_client(connect(models_config(server.base_url)), sink).ask(RELEVANT, SKY, pass_id="t:p")
    assert reply.value is not None
    assert reply.value.word == "yes"
    assert sink.asked()[0].answer.thinking == "No, no, no."


def test_the_record_names_the_very_files_of_the_model_that_answered() -> None:
    sink = MemorySink()
    with OllamaServer(["a", "b"]) as server:
        transport = connect(models_config(server.base_url))
        for _ in range(2):
            model_client(transport, sink).ask(SHOUT, SKY, pass_id="t:p")
        digests = {model.tag: model.digest for model in transport.list_models()}
        assert server.state.paths.count("/api/tags") == 2
    assert [call.model.digest for call in sink.asked()] == [digests["coder:3b"]] * 2


def test_confidence_comes_from_the_log_probabilities_where_the_server_has_them() -> None:
    said = Answer(text="No", likely=(("No", 0.6), ("Yes", 0.2)))
    sink = MemorySink()
    for logprobs, confidence in ((True, 0.75), (False, None)):
        with OllamaServer([said], logprobs=logprobs) as server:
            reply = model_client(connect(models_config(server.base_url)), sink).ask(
                RELEVANT, SKY, pass_id="t:p"
            )
        assert reply.value is not None
        assert reply.value.word == "no"
        assert reply.value.confidence == pytest.approx(confidence)
    assert [bool(call.answer.logprobs) for call in sink.asked()] == [True, False]


def test_no_prompt_makes_the_server_load_a_model_again() -> None:
    script: Answerer = lambda call: '{"name": "blue"}' if call.schema else "yes"  # noqa: E731 - a script in a line
    with OllamaServer(script) as server:
        client = model_client(connect(models_config(server.base_url)), MemorySink())
        client.ask(COLOUR, SKY, pass_id="t:p")
        client.ask(RELEVANT, SKY, pass_id="t:p")
        client.ask(COLOUR, SKY, pass_id="t:p", max_answer_tokens=200)
        assert server.reloads == 0
        client = model_client(connect(models_config(server.base_url)), MemorySink(), window=2048)
        client.ask(COLOUR, SKY, pass_id="t:p")
        assert server.reloads == 1


def test_the_first_failure_in_order_ends_the_judging() -> None:
    def script(call: object) -> Answer:
        return Answer(status=500, error="boom")

    sink = MemorySink()
    with OllamaServer(script) as server:
        client = model_client(connect(models_config(server.base_url)), sink)
        with pytest.raises(ServerFailed, match="boom"):
            judge_numbers(client, range(50))
        assert len(server.calls) < 50
    assert len(sink.asked()) == len(server.calls)
