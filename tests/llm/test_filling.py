from collections.abc import Iterator

import pytest
from msgspec import Struct, field
from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client, models_config
from testing.client.scripted_transport import ScriptedTransport
from testing.servers.ollama_in_memory import MemoryOllama
from testing.servers.ollama_script import Answer, Answerer, Fills
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import Kind, OpenAiServer

from clean_room_agent.artifacts.model_calls import AnswerReading, BiasKey, ModelCall
from clean_room_agent.artifacts.prompt_sources import PromptSource, SourcedText, sourced
from clean_room_agent.errors import ReplayMismatch, ServerBusy, WindowExceeded
from clean_room_agent.llm.answers import Choice
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.filling import MADE_UP_GAPS, FillRequest
from clean_room_agent.llm.transport import ChatRequest, RawAnswer
from clean_room_agent.llm.transports import ollama, openai
from clean_room_agent.llm.transports.replay import ReplayTransport

GAP = FillRequest(
    before=sourced("def f(a):\n", PromptSource.FILE, path="a.py", number=1),
    after=sourced("\n    return b\n", PromptSource.FILE, path="a.py", number=2),
)
LINE = "    b = a\n    c = 3"


class Kept(Struct):
    """Measurements in memory."""

    sink: MemorySink
    calls: dict[BiasKey, int] = field(default_factory=dict)

    def newest(self, key: BiasKey, now: str) -> ModelCall | None:
        return self.sink.calls[self.calls[key] - 1] if key in self.calls else None

    def keep(self, key: BiasKey, call_id: int, choice: Choice) -> None:
        self.calls[key] = call_id


def openai_client(server: OpenAiServer, sink: MemorySink, *, streaming: bool = True) -> ModelClient:
    config = models_config(server.base_url, provider="openai", streaming=streaming)
    return model_client(openai.connect(config), sink, config=config)


def clients(script: Answerer, sink: MemorySink, *, fills: Fills) -> Iterator[ModelClient]:
    """A client of each kind of server that can be asked to fill a gap."""
    yield model_client(MemoryOllama(answerer=script, fills=fills).transport(models_config()), sink)
    with OllamaServer(script, fills=fills) as server:
        config = models_config(server.base_url)
        yield model_client(ollama.connect(config), sink, config=config)
    kinds: tuple[tuple[Kind, bool], ...] = (
        ("llama-server", True),
        ("llama-server", False),
        ("vllm", True),
        ("llama-cpp-python", False),
    )
    for kind, streaming in kinds:
        with OpenAiServer(script, kind=kind, fills=fills) as other:
            yield openai_client(other, sink, streaming=streaming)


def test_a_gap_is_filled_by_every_kind_of_server() -> None:
    sink = MemorySink()
    gaps = []

    def answer(call: object) -> str:
        gaps.append(getattr(call, "gap", None))
        return LINE

    for client in clients(answer, sink, fills="rightly"):
        reply = client.fill(GAP, pass_id="t:p", item="a.py:2")
        assert (reply.text, reply.finish, reply.whole) == ("    b = a", "stop", True)
        assert reply.prompt_tokens is not None
        assert reply.completion_tokens is not None
    asked = {gap for gap in gaps if gap is not None}
    assert asked == {("def f(a):\n", "\n    return b\n")}


def test_whether_a_model_fills_gaps_is_found_out_by_asking() -> None:
    for client in clients(lambda _: "", MemorySink(), fills="rightly"):
        assert client.can_fill(pass_id="t:p")
    for client in clients(lambda _: "", MemorySink(), fills="wrongly"):
        assert not client.can_fill(pass_id="t:p")
    for client in clients(lambda _: "", MemorySink(), fills=""):
        assert not client.can_fill(pass_id="t:p")


def test_the_model_that_gaps_are_given_to_is_the_one_that_is_tried() -> None:
    right: dict[str, str] = {gap.request.shown: gap.right[0] for gap in MADE_UP_GAPS}

    def answer(request: ChatRequest) -> str:
        return right[request.prompt] if request.model.tag == "filler:1b" else "pass"

    config = models_config(overrides={"fill": "filler:1b"})
    assert model_client(ScriptedTransport(answer), MemorySink(), config=config).can_fill(pass_id="t:p")


def test_most_of_the_made_up_gaps_are_enough() -> None:
    right = {gap.request.shown: gap.right[0] for gap in MADE_UP_GAPS}
    for missed, able in ((1, True), (2, False)):
        wrong = {gap.request.shown for gap in MADE_UP_GAPS[:missed]}
        transport = ScriptedTransport(
            lambda request, wrong=wrong: "pass" if request.prompt in wrong else right[request.prompt]  # type: ignore[misc]
        )
        assert model_client(transport, MemorySink()).can_fill(pass_id="t:p") == able
        assert len(transport.requests) == (4 if able else 2)  # no answer after the second could change it


def test_a_later_command_remembers_it_and_records_what_shows_it() -> None:
    sink = MemorySink()
    kept = Kept(sink=sink)
    with OllamaServer(lambda _: "", fills="rightly") as server:
        config = models_config(server.base_url)
        for _ in range(2):
            client = model_client(ollama.connect(config), sink, config=config, biases=kept)
            assert client.can_fill(pass_id="t:p")
        assert len([call for call in server.calls if call.gap]) == 4
    second = sink.asked()[4:]
    assert [call.ending.replayed_from is not None for call in second] == [True] * 4


def test_a_busy_server_is_not_taken_for_one_that_cannot() -> None:
    busy = RawAnswer(request_body="{}", error=ServerBusy("full"))
    config = models_config(timeouts={"first_byte": 0.1})
    with pytest.raises(ServerBusy):
        model_client(ScriptedTransport([busy]), MemorySink(), config=config).can_fill(pass_id="t:p")


def test_a_recording_answers_gaps_and_whether_they_can_be_filled() -> None:
    sink = MemorySink()
    with OpenAiServer(lambda _: LINE, fills="rightly") as server:
        client = openai_client(server, sink)
        assert client.can_fill(pass_id="t:p")
        first = client.fill(GAP, pass_id="t:p", item="a.py:2")
    again = model_client(ReplayTransport(sink.calls), MemorySink())
    assert again.can_fill(pass_id="u:p")
    assert again.fill(GAP, pass_id="u:p", item="a.py:2").text == first.text
    other = FillRequest(before=GAP.before, after=SourcedText("\n    return c\n"))
    with pytest.raises(ReplayMismatch, match="line 3"):
        model_client(ReplayTransport(sink.calls), MemorySink()).fill(other, pass_id="u:p", item="a.py:2")


def test_the_record_shows_both_texts_and_where_they_come_from() -> None:
    sink = MemorySink()
    transport = ScriptedTransport(["    b = a"])
    model_client(transport, sink).fill(GAP, pass_id="t:p", item="a.py:2")
    (call,) = sink.asked()
    assert call.request.prompt == "def f(a):\n<<GAP>>\n    return b\n"
    assert call.request.spans is not None
    assert [(span.first, span.number) for span in call.request.spans] == [(1, 1), (2, 2)]
    assert (call.site.call_type, call.site.item, call.model.role) == ("fill", "a.py:2", "coding")
    assert sink.readings[-1][1] is AnswerReading.PARSED


def test_the_mean_log_probability_is_that_of_the_tokens_written() -> None:
    for client in clients(lambda _: Answer(text="x", likely=(("x", 0.5),)), MemorySink(), fills="rightly"):
        reply = client.fill(
            FillRequest(before=GAP.before, after=GAP.after, wants_logprobs=True), pass_id="t:p"
        )
        assert reply.mean_logprob == pytest.approx(-0.693, abs=0.01)
        assert client.fill(GAP, pass_id="t:p", item="b").mean_logprob is None


def test_what_llama_server_drops_around_a_gap_is_noticed() -> None:
    long = FillRequest(before=GAP.before, after=SourcedText("\n" + "x = y + z\n" * 100))
    with (
        OpenAiServer(lambda _: LINE, fills="rightly", batch=512) as server,
        pytest.raises(WindowExceeded, match="tokens around a gap"),
    ):
        openai_client(server, MemorySink()).fill(long, pass_id="t:p")
    with OpenAiServer(lambda _: LINE, fills="rightly", batch=4096) as server:
        assert openai_client(server, MemorySink()).fill(long, pass_id="t:p").text == "    b = a"


def test_a_server_that_does_not_stop_is_cut_at_the_stop() -> None:
    sink = MemorySink()
    transport = ScriptedTransport([RawAnswer(request_body="{}", text=f"{LINE}\n    d", finish="length")])
    reply = model_client(transport, sink).fill(GAP, pass_id="t:p")
    assert (reply.text, reply.whole) == ("    b = a", True)
    assert sink.readings[-1][1] is AnswerReading.PARSED
