"""A server that was proven once is not asked again, while it is the same."""

import pytest
from msgspec import Struct, field
from msgspec.structs import replace
from testing.client.memory_sink import MemorySink
from testing.client.model_client import SHOUT, Note, model_client, models_config
from testing.client.scripted_transport import ScriptedTransport
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import OpenAiServer

from clean_room_agent.errors import TruncatingServer, WindowExceeded
from clean_room_agent.llm.transport import ChatRequest, RawAnswer, Refusal
from clean_room_agent.llm.transports import ollama, openai
from clean_room_agent.llm.window_probe import PROBE_NAME, ProbedServer

SKY = Note(text="sky")
MONDAY, SUNDAY, NEXT_MONDAY = "2026-01-05T10:00:00Z", "2026-01-11T10:00:00Z", "2026-01-12T10:00:00Z"


class Proofs(Struct):
    """Proofs in memory."""

    now: str = MONDAY
    kept: dict[ProbedServer, str] = field(default_factory=dict)

    def newest(self, server: ProbedServer) -> str | None:
        return self.kept.get(server)

    def keep(self, server: ProbedServer, call_id: int) -> None:
        assert call_id > 0
        self.kept[server] = self.now


def probes_of(server: OllamaServer, proofs: Proofs | None, *, window: int = 4096, now: str = MONDAY) -> int:
    """How often a new client probes the server before its first answer."""
    sink = MemorySink()
    config = models_config(server.base_url)
    client = model_client(ollama.connect(config), sink, config=config, window=window, proofs=proofs, now=now)
    assert client.ask(SHOUT, SKY, pass_id="t:p").value == "FINE"
    return [call.site.call_type for call in sink.calls].count("window_probe")


def openai_probes(server: OpenAiServer, proofs: Proofs, *, now: str) -> int:
    sink = MemorySink()
    config = models_config(server.base_url, provider="openai")
    client = model_client(openai.connect(config), sink, config=config, proofs=proofs, now=now)
    assert client.ask(SHOUT, SKY, pass_id="t:p").value == "FINE"
    return [call.site.call_type for call in sink.calls].count("window_probe")


def test_a_later_command_does_not_probe_the_same_server_again() -> None:
    proofs = Proofs()
    with OllamaServer(lambda _: "fine") as server:
        assert [probes_of(server, proofs) for _ in range(3)] == [1, 0, 0]
        assert probes_of(server, proofs, now="2036-01-05T10:00:00Z") == 0
        (proven,) = proofs.kept
        assert (proven.provider, proven.base_url, proven.model, proven.window) == (
            "ollama",
            server.base_url,
            "coder:3b",
            4096,
        )
        assert proven.model_digest
        assert probes_of(server, None) == 1


def test_another_window_another_model_and_another_server_are_probed() -> None:
    proofs = Proofs()
    with OllamaServer(lambda _: "fine") as server, OllamaServer(lambda _: "fine") as other:
        assert probes_of(server, proofs) == 1
        assert probes_of(server, proofs, window=8192) == 1
        assert probes_of(other, proofs) == 1
        proofs.kept = {replace(known, model_digest="another"): when for known, when in proofs.kept.items()}
        assert probes_of(server, proofs) == 1


def test_a_server_that_does_not_tell_the_digest_is_probed_by_each_command() -> None:
    class Untold(ScriptedTransport):
        live = True

    def answer(request: ChatRequest) -> RawAnswer:
        if request.identity.prompt != PROBE_NAME:
            return RawAnswer(request_body="{}", text="fine")
        refusal = Refusal(prompt_tokens=None, window=None)
        return RawAnswer(
            request_body="{}", error=WindowExceeded("too long", hint="shorten it"), refusal=refusal
        )

    proofs, sink = Proofs(), MemorySink()
    for _ in range(2):
        model_client(Untold(answer), sink, proofs=proofs).ask(SHOUT, SKY, pass_id="t:p")
    assert [call.site.call_type for call in sink.calls] == [PROBE_NAME, "shout"] * 2
    assert proofs.kept == {}


def test_without_digests_a_proof_counts_for_a_week() -> None:
    proofs = Proofs()
    with OpenAiServer(lambda _: "fine") as server:
        assert openai_probes(server, proofs, now=MONDAY) == 1
        assert openai_probes(server, proofs, now=SUNDAY) == 0
        assert openai_probes(server, proofs, now=NEXT_MONDAY) == 1


def test_a_proven_server_that_now_has_a_smaller_window_is_found_without_a_probe() -> None:
    proofs = Proofs()
    with OpenAiServer(lambda _: "fine") as server:
        openai_probes(server, proofs, now=MONDAY)
        server.own_window = 1024
        with pytest.raises(WindowExceeded, match="with a window of 1024 tokens, not the configured 4096"):
            openai_probes(server, proofs, now=MONDAY)


def test_a_server_that_cuts_is_never_taken_for_proven() -> None:
    proofs = Proofs()
    with OllamaServer(lambda _: "fine", overflow="silent") as server:
        with pytest.raises(TruncatingServer):
            probes_of(server, proofs)
        assert proofs.kept == {}


def test_the_explicit_probe_always_asks_and_renews_the_proof() -> None:
    proofs = Proofs()
    with OllamaServer(lambda _: "fine") as server:
        probes_of(server, proofs)
        proofs.now = SUNDAY
        sink = MemorySink()
        config = models_config(server.base_url)
        client = model_client(ollama.connect(config), sink, config=config, proofs=proofs)
        assert client.probe("coding", pass_id="t:check").refused
    assert [call.site.call_type for call in sink.calls] == ["window_probe"]
    assert list(proofs.kept.values()) == [SUNDAY]
