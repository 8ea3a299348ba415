from typing import Any

import pytest
from msgspec.structs import astuple, replace
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
from testing.servers.ollama_script import Answer, ChatCall, busy
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import WINDOW, OpenAiServer, shout_of

from clean_room_agent.artifacts.model_calls import CallAnswer, ModelCall
from clean_room_agent.errors import ArtifactError, ModelError, ReplayMismatch, ServerFailed
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.transports.ollama import connect
from clean_room_agent.llm.transports.openai import connect as connect_openai
from clean_room_agent.llm.transports.replay import ReplayTransport, dump_calls, load_calls


def recorded(sink: MemorySink) -> tuple[ModelCall, ...]:
    return tuple(replace(call, id=number) for number, call in enumerate(sink.calls, start=1))


def answers_only(call: ModelCall) -> ModelCall:
    """What a recording keeps of the call: neither its task and its stage, nor where its prompt comes from or how long it took."""
    site = replace(call.site, pass_id=f":{call.site.identity.pass_id}", stage_name="")
    return replace(
        call,
        site=site,
        model=replace(call.model, role="reasoning", provider=""),
        request=replace(call.request, spans=None),
        cost=replace(call.cost, estimated_tokens=0, latency_ms=0, timestamp=""),
    )


def answerer(call: ChatCall) -> Answer | str:
    if call.title == COLOUR.title:
        return "no JSON" if "earlier answer" not in call.prompt else '{"name": "blue"}'
    return Answer(text="No" if "thing: 3" in call.prompt else "Yes", thinking="hm")


def run(client: ModelClient, task: str) -> list[Any]:
    colour = client.ask(COLOUR, Note(text="sky"), pass_id=f"{task}:meta_plan")
    judged = judge_numbers(client, range(6), pass_id=f"{task}:impl:a:b", stage="scope")
    return [colour.value, [reply.value for reply in judged]]


@pytest.fixture
def recording() -> tuple[MemorySink, list[Any]]:
    sink = MemorySink()
    with OllamaServer(answerer) as server:
        values = run(model_client(connect(models_config(server.base_url)), sink), "task-1")
    return sink, values


def test_a_replay_gives_the_same_answers_and_the_same_record(recording: tuple[MemorySink, list[Any]]) -> None:
    live, values = recording
    calls = load_calls(dump_calls(recorded(live)), source="file")
    assert calls == tuple(map(answers_only, recorded(live)))
    sink = MemorySink()
    assert run(model_client(ReplayTransport(calls), sink), "task-2") == values

    def rows(kept: MemorySink) -> list[tuple[Any, ...]]:
        return sorted(
            (
                call.site.identity.prompt,
                call.site.item,
                call.site.attempt,
                call.site.stage_name,
                astuple(call.request),
                astuple(call.answer),
                call.ending.finish,
                call.ending.error,
                (call.model.tag, call.model.role),
                (call.cost.prompt_tokens, call.cost.completion_tokens, call.cost.estimated_tokens),
            )
            for call in kept.calls
        )

    probes = [call for call in live.calls if call.site.call_type == "window_probe"]
    assert len(probes) == 1
    live.calls = [call for call in live.calls if call not in probes]
    assert rows(sink) == rows(live)
    assert {call.model.provider for call in sink.calls} == {"replay"}
    assert all(call.ending.replayed_from for call in sink.calls)


def test_another_prompt_is_refused_with_the_first_line_that_differs(
    recording: tuple[MemorySink, list[Any]],
) -> None:
    client = model_client(ReplayTransport(recorded(recording[0])), MemorySink())
    with pytest.raises(ReplayMismatch) as caught:
        client.ask(COLOUR, Note(text="sea"), pass_id="t:meta_plan")
    assert caught.value.message == (
        "pass meta_plan, prompt colour, attempt 0 asks something else than recorded call 2: "
        "line 5 of the prompt was 'The thing: sky' and now is 'The thing: sea'"
    )
    with pytest.raises(ReplayMismatch, match=r"line 6 of the prompt was \(not there\) and now is 'more'"):
        client.ask(COLOUR, Note(text="sky\nmore"), pass_id="u:meta_plan")
    with pytest.raises(ReplayMismatch, match=r"line 1 of the system text was 'You answer with JSON.'"):
        client.ask(replace(COLOUR, system="Other."), Note(text="sky"), pass_id="v:meta_plan")


@pytest.mark.parametrize(
    ("pass_id", "item", "said"),
    [
        (
            "t:adjust:a:after_b",
            "",
            "no call for pass adjust:a:after_b, prompt relevant, attempt 0; none for that pass",
        ),
        ("t:meta_plan", "", "for that pass it holds: colour"),
        (
            "t:impl:a:b",
            "9",
            "item 9, attempt 0; for that prompt it holds: item 0 attempt 0, item 1 attempt 0",
        ),
    ],
)
def test_an_unrecorded_call_is_refused_with_what_there_is(
    recording: tuple[MemorySink, list[Any]], pass_id: str, item: str, said: str
) -> None:
    sink = MemorySink()
    client = model_client(ReplayTransport(recorded(recording[0])), sink)
    with pytest.raises(ReplayMismatch, match=said):
        client.ask(RELEVANT, Note(text="1"), pass_id=pass_id, item=item)
    assert sink.calls == []


def test_recorded_failures_are_replayed_without_waiting() -> None:
    live = MemorySink()
    with OllamaServer([busy(), "hello", Answer(status=500, error="boom")]) as server:
        config = models_config(server.base_url, retries=1)
        client = model_client(connect(config), live, config=config)
        client.ask(SHOUT, Note(text="a"), pass_id="t:p")
        with pytest.raises(ServerFailed):
            client.ask(SHOUT, Note(text="b"), pass_id="t:p")
    sink = MemorySink()
    replay = model_client(ReplayTransport(recorded(live)), sink, config=config)
    assert replay.ask(SHOUT, Note(text="a"), pass_id="t:p").value == "HELLO"
    with pytest.raises(ModelError, match="boom") as caught:
        replay.ask(SHOUT, Note(text="b"), pass_id="t:p")
    assert type(caught.value) is ServerFailed
    assert [call.ending.finish for call in sink.calls] == ["error:ServerBusy", "stop", "error:ServerFailed"]


def test_an_answer_that_was_made_shorter_is_replayed_so() -> None:
    live = MemorySink()
    prompt = shout_of(WINDOW - 40)
    with OpenAiServer(["x"], kind="vllm", counts=False) as server:
        config = models_config(server.base_url, provider="openai")
        client = model_client(connect_openai(config), live, config=config)
        assert client.ask(SHOUT, prompt, pass_id="t:p", max_answer_tokens=60).value == "X"
    assert [call.ending.finish for call in live.asked()] == ["error:WindowExceeded", "stop"]
    sink = MemorySink()
    replay = model_client(ReplayTransport(recorded(live)), sink, config=config)
    assert replay.ask(SHOUT, prompt, pass_id="u:p", max_answer_tokens=60).value == "X"
    assert [call.ending.finish for call in sink.calls] == ["error:WindowExceeded", "stop"]


def test_of_two_calls_with_one_identity_the_later_counts(recording: tuple[MemorySink, list[Any]]) -> None:
    calls = recorded(recording[0])
    later = tuple(replace(call, answer=CallAnswer(response='{"name": "late"}'), id=99) for call in calls[1:2])
    reply = model_client(ReplayTransport(calls + later), MemorySink()).ask(
        COLOUR, Note(text="sky"), pass_id="t:meta_plan"
    )
    assert reply.value is not None
    assert reply.value.name == "late"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a recording of version 1"),
        ('{"format": "cra-recording", "version": 2}\n', "not a recording of version 1"),
        (dump_calls([]) + "{}\n", "file, line 2: Object missing required field `call_id`"),
        (dump_calls([]) + "\nnonsense\n", "file, line 3: JSON is malformed"),
    ],
)
def test_what_is_no_recording_is_refused(text: str, said: str) -> None:
    with pytest.raises(ArtifactError, match=said):
        load_calls(text, source="file")
