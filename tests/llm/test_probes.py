"""A bias is taken from what a model says, and a server that was proven once is not asked again while it is the same."""

import math
from collections.abc import Mapping

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import Struct, field
from msgspec.structs import replace
from testing.client.memory_sink import MemorySink
from testing.client.model_client import COLOUR, RELEVANT, SHOUT, Note, model_client, models_config
from testing.client.scripted_transport import ScriptedTransport
from testing.servers.ollama_script import Answer, ChatCall
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import OpenAiServer

from clean_room_agent.artifacts.model_calls import BiasKey, ModelCall, ProbedServer
from clean_room_agent.errors import TruncatingServer, WindowExceeded
from clean_room_agent.llm.answers import Choice
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.probes import (
    ABOUT_NOTHING,
    CLEAR,
    NOTHING,
    PROBE_NAME,
    calibrate_choice,
    lets_in,
    needs_bias,
)
from clean_room_agent.llm.transport import ChatRequest, RawAnswer, WindowRefusal
from clean_room_agent.llm.transports import ollama, openai
from clean_room_agent.llm.transports.ollama import connect
from clean_room_agent.llm.transports.replay import ReplayTransport

SHARES = st.floats(min_value=0, max_value=1)
WORDS = ("change", "read", "skip")
TINY = 1e-9
"""Beyond what rounding does."""
SKY = Note(text="sky")
MONDAY, SUNDAY, NEXT_MONDAY = "2026-01-05T10:00:00Z", "2026-01-11T10:00:00Z", "2026-01-12T10:00:00Z"


def yes(share: float) -> Choice:
    return Choice(word="yes" if share > 0.5 else "no", shares=(("yes", share), ("no", 1 - share)))


def score(share: float, neutral: float | None) -> float:
    calibrated = calibrate_choice(yes(share), None if neutral is None else yes(neutral), ("yes",))
    assert calibrated is not None
    return calibrated.score


def test_the_example_of_the_module() -> None:
    assert score(0.42, 0.31) == pytest.approx(0.48, abs=0.005)
    assert score(0.28, 0.31) == pytest.approx(-0.14, abs=0.005)


@pytest.mark.parametrize(
    ("shares", "needed"),
    [
        ((0.95, 0.04), False),
        ((0.03, 0.05), False),
        ((0.95, 0.2), True),
        ((0.6, 0.04), True),
        ((0.95, 0.97), True),
        ((), False),
    ],
)
def test_a_leaning_is_needed_where_an_answer_is_unclear_or_all_say_yes(
    shares: tuple[float, ...], needed: bool
) -> None:
    assert needs_bias([*map(yes, shares), Choice(word="no"), None], ("yes",)) is needed


@given(st.floats(0.0, 1 - CLEAR), SHARES)
def test_a_clear_no_stays_one_whatever_the_leaning(share: float, neutral: float) -> None:
    assert score(share, neutral) <= 1e-9


@given(SHARES, SHARES, SHARES)
def test_calibration_keeps_the_order(one: float, other: float, neutral: float) -> None:
    low, high = sorted((one, other))
    assert score(low, neutral) <= score(high, neutral)


@pytest.mark.parametrize("neutral", [0.0, 1.0])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_leaning_without_doubt_moves_a_verdict_by_a_bound_and_no_further(
    share: float, neutral: float
) -> None:
    moved = score(share, neutral) - score(share, None)
    assert moved == pytest.approx(math.log(10) * (1 if neutral == 0.0 else -1))


@given(st.lists(st.floats(min_value=0.01, max_value=1), min_size=3, max_size=3))
def test_of_three_words_the_one_that_says_most_beyond_the_leaning_counts(shares: list[float]) -> None:
    total = sum(shares)
    choice = Choice(word="skip", shares=tuple((w, s / total) for w, s in zip(WORDS, shares, strict=True)))
    even = Choice(word="skip", shares=tuple((word, 1 / 3) for word in WORDS))
    found = calibrate_choice(choice, even, ("change", "read"))
    assert found is not None
    assert found.probability == pytest.approx(max(dict(choice.shares)[word] for word in ("change", "read")))
    against = dict(choice.shares)["skip"]
    assume(abs(found.probability - against) > TINY)
    assert (found.score > 0) == (found.probability > against)


@pytest.mark.parametrize(
    ("value", "threshold", "counts"),
    [(0.1, 0.5, True), (0.0, 0.5, False), (1.0, 0.8, False), (1.5, 0.8, True), (-9.0, 0.0, True), (9.0, 1.0, False)],
)  # fmt: skip
def test_a_verdict_counts_above_the_log_odds_of_the_threshold(
    value: float, threshold: float, counts: bool
) -> None:
    assert lets_in(value, threshold) is counts


class Kept:
    """A store in memory, which knows the calls of a sink."""

    def __init__(self, sink: MemorySink) -> None:
        self.rows: dict[BiasKey, int] = {}
        self._sink = sink

    def newest(self, key: BiasKey, now: str) -> ModelCall | None:
        return recorded(self._sink, self.rows[key]) if key in self.rows else None

    def keep(self, key: BiasKey, call_id: int, choice: Choice) -> None:
        self.rows[key] = call_id


def recorded(sink: MemorySink, call_id: int) -> ModelCall:
    return replace(sink.calls[call_id - 1], id=call_id)


def neutral(client: ModelClient, task: str) -> Mapping[str, float]:
    choice = client.neutral(RELEVANT, Note(text=NOTHING), pass_id=f"{task}:p", stage="scope")
    return dict(choice.shares) if choice is not None else {}


def answerer(call: ChatCall) -> Answer | str:
    return Answer(text="no", likely=(("no", 0.69), ("yes", 0.31))) if call.title == RELEVANT.title else "x"


def test_a_model_is_measured_once_and_each_run_records_what_it_used() -> None:
    sink = MemorySink()
    kept = Kept(sink)
    with OllamaServer(answerer) as server:
        config = models_config(server.base_url)
        clients = [model_client(connect(config), sink, config=config, biases=kept) for _ in range(2)]
        found = [neutral(clients[0], "one"), neutral(clients[0], "one"), neutral(clients[1], "two")]
        asked = [call for call in server.calls if NOTHING in str(call)]
    assert found == [pytest.approx({"yes": 0.31, "no": 0.69})] * 3
    assert len(asked) == 1
    first, second = (call for call in sink.calls if call.site.item == ABOUT_NOTHING)
    assert (first.site.pass_id, first.ending.replayed_from) == ("one:p", None)
    assert (second.site.pass_id, second.ending.replayed_from) == ("two:p", sink.calls.index(first) + 1)
    assert [measured.model_digest != "" for measured in kept.rows] == [True]


def test_a_run_that_measured_nothing_itself_is_replayed_by_its_own_record() -> None:
    sink = MemorySink()
    kept = Kept(sink)
    with OllamaServer(answerer) as server:
        config = models_config(server.base_url)
        for task in ("one", "two"):
            neutral(model_client(connect(config), sink, config=config, biases=kept), task)
    own = [number for number, call in enumerate(sink.calls, 1) if call.site.pass_id == "two:p"]
    again = model_client(ReplayTransport([recorded(sink, number) for number in own]), MemorySink())
    assert neutral(again, "three") == pytest.approx({"yes": 0.31, "no": 0.69})


def test_another_model_or_a_changed_prompt_is_measured_anew() -> None:
    sink = MemorySink()
    kept = Kept(sink)
    with OllamaServer(answerer) as server:
        for fields in ({}, {"reasoning": "coder:3b"}):
            config = models_config(server.base_url, **fields)
            neutral(model_client(connect(config), sink, config=config, biases=kept), "one")
        config = models_config(server.base_url)
        client = model_client(connect(config), sink, config=config, biases=kept)
        client.neutral(RELEVANT, Note(text="nil"), pass_id="one:p")
    assert len(kept.rows) == 3
    assert all(call.ending.replayed_from is None for call in sink.calls)


@pytest.mark.parametrize("answer", ["no", "well"])
def test_a_server_without_probabilities_and_an_unreadable_answer_measure_nothing(answer: str) -> None:
    sink = MemorySink()
    kept = Kept(sink)
    with OllamaServer(lambda call: answer if call.title == RELEVANT.title else "x", logprobs=False) as server:
        config = models_config(server.base_url)
        client = model_client(connect(config), sink, config=config, biases=kept)
        assert neutral(client, "one") == neutral(client, "one") == {}
    assert kept.rows == {}
    assert len([call for call in sink.calls if call.site.item == ABOUT_NOTHING]) == 1
    assert COLOUR.name not in {call.site.call_type for call in sink.calls}


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


def test_a_server_that_does_not_tell_the_digest_is_probed_by_each_command() -> None:
    class Untold(ScriptedTransport):
        live = True

    def answer(request: ChatRequest) -> RawAnswer:
        if request.identity.prompt != PROBE_NAME:
            return RawAnswer(request_body="{}", text="fine")
        refusal = WindowRefusal(prompt_tokens=None, window=None)
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


def test_a_server_that_cuts_is_never_taken_for_proven() -> None:
    proofs = Proofs()
    with OllamaServer(lambda _: "fine", overflow="silent") as server:
        with pytest.raises(TruncatingServer):
            probes_of(server, proofs)
        assert proofs.kept == {}
