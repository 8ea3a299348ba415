"""What only a server that we did not write can prove. Opt-in: see `testing/servers/llama_server.py`."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from pydantic import BaseModel
from testing.client.memory_sink import MemorySink
from testing.client.model_client import RELEVANT, Note, budget_config, judge_numbers, model_client
from testing.runs.solving import Project, make_project
from testing.servers.llama_server import MODEL, PROGRAM, WINDOW, RealServer, running

from clean_room_agent.artifacts.model_calls import CallIdentity
from clean_room_agent.errors import ModelNotFound, WindowExceeded
from clean_room_agent.llm.answers import JsonAnswer, TextAnswer
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.model_config import ModelsConfig
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.token_estimator import count_pieces
from clean_room_agent.llm.transport import ChatRequest, RawAnswer, Sampling
from clean_room_agent.llm.transports.openai import connect

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.model,
    pytest.mark.skipif(
        not (PROGRAM and MODEL), reason="CRA_LLAMA_SERVER and CRA_LLAMA_MODEL name a server and a model"
    ),
]


class Paint(BaseModel):
    colour: Literal["red", "green"]
    wet: bool
    coats: list[Literal[1, 2]]


PAINT: Prompt[Note, Paint] = Prompt(
    name="paint",
    role="reasoning",
    title="Choose the paint",
    system="You answer with JSON.",
    template="{{ heading }}\n\nSchema: {{ schema }}\n\nThe thing: {{ text }}",
    answer=JsonAnswer(Paint),
    max_answer_tokens=200,
    example='{"colour": "red", "wet": true, "coats": [1]}',
)
SAY: Prompt[Note, str] = Prompt(
    name="say",
    role="coding",
    title="Say something",
    system="You write text.",
    template="{{ heading }}\n\nAbout: {{ text }}",
    answer=TextAnswer(str),
    max_answer_tokens=40,
    example="Something",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with running(tmp_path_factory.mktemp("server") / "log") as started:
        yield started


def asking(server: RealServer, sink: MemorySink, **fields: object) -> ModelClient:
    config = msgspec.convert(server.models_table | fields, ModelsConfig)
    return model_client(connect(config), sink, config=config, window=WINDOW)


@pytest.mark.parametrize("thing", ["a wall", "a boat", "a very old door", "a fence"])
def test_an_answer_is_in_the_shape_that_was_asked_for(server: RealServer, thing: str) -> None:
    sink = MemorySink()
    reply = asking(server, sink).ask(PAINT, Note(text=thing), pass_id="t:p", repair=False)
    if reply.finish == "length":  # a list may go on for ever, but in shape
        assert json.loads(reply.text + "]}")["colour"] in {"red", "green"}
    else:
        assert reply.value is not None, reply.text
    assert sink.calls[0].site.call_type == "window_probe"
    assert sink.calls[0].ending.finish == "error:WindowExceeded"


def sent(server: RealServer, text: str, **fields: object) -> RawAnswer:
    """The answer to a request that nobody looked at before it was sent."""
    config = msgspec.convert(server.models_table | fields, ModelsConfig)
    request = ChatRequest(
        identity=CallIdentity(pass_id="p", prompt="say", item="", attempt=0),
        model=ModelRouter(config, budget_config(WINDOW)).resolve("coding", "say"),
        system=SAY.system,
        prompt=SAY.render(Note(text=text)),
        schema=None,
        wants_logprobs=True,
        max_tokens=40,
        sampling=Sampling(),
    )
    return connect(config).send(request)


def test_a_prompt_that_is_too_long_is_refused_and_the_refusal_understood(server: RealServer) -> None:
    answer = sent(server, " x" * WINDOW)
    assert isinstance(answer.error, WindowExceeded)
    assert answer.refusal is not None
    assert answer.refusal.window == WINDOW
    assert (answer.refusal.prompt_tokens or 0) > WINDOW


def test_a_prompt_that_the_estimate_lets_pass_is_not_sent_where_it_does_not_fit(server: RealServer) -> None:
    sink = MemorySink()
    with pytest.raises(WindowExceeded, match=r"by the server.s count|refused a prompt"):
        asking(server, sink, token_factor=1.0).ask(SAY, Note(text="\u00e9" * 12 * 1500), pass_id="t:p")
    assert [call.ending.finish for call in sink.asked()] == (
        [] if server.is_binary else ["error:WindowExceeded"]
    )


def test_probabilities_come_for_the_first_token_and_are_probabilities(server: RealServer) -> None:
    sink = MemorySink()
    asking(server, sink).ask(RELEVANT, Note(text="a door"), pass_id="t:p", repair=False)
    first, *_ = json.loads(sink.asked()[0].answer.logprobs)
    _, likely = first
    assert len(likely) == 20
    assert 0 < math.fsum(math.exp(logprob) for _, logprob in likely) <= 1.0001
    assert [logprob for _, logprob in likely] == sorted((logprob for _, logprob in likely), reverse=True)


def test_a_stream_says_what_a_whole_answer_says(server: RealServer) -> None:
    said = []
    for streaming in (True, False, True):
        answer = sent(server, "a door", streaming=streaming)
        assert answer.error is None
        # The whole answer of one server has the end's token too, which is no text.
        tokens = [choice.token for choice in answer.tokens if choice.token]
        said.append((answer.text, answer.finish, tokens))
    assert said[0][0]
    assert said == said[:1] * 3


def test_tokens_are_counted_by_the_server(server: RealServer) -> None:
    sink = MemorySink()
    client = asking(server, sink)
    texts = ["x", "x" + " x" * 50]
    short, long = (client.ask(SAY, Note(text=text), pass_id="t:p", item=text) for text in texts)
    assert short.prompt_tokens is not None
    assert long.prompt_tokens is not None
    assert long.prompt_tokens - short.prompt_tokens >= 50
    assert short.prompt_tokens >= count_pieces(sink.asked()[0].request.prompt)
    assert short.completion_tokens is not None
    assert 0 < short.completion_tokens <= SAY.max_answer_tokens


def test_thirty_calls_in_a_row_and_two_at_a_time_all_succeed(server: RealServer) -> None:
    sink = MemorySink()
    client = asking(server, sink, parallel=2)
    assert len(judge_numbers(client, range(15))) == 15
    assert all(not call.ending.error for call in sink.asked())
    assert len(sink.asked()) >= 15


def test_a_model_that_it_does_not_list_is_refused_though_it_would_answer(server: RealServer) -> None:
    with pytest.raises(ModelNotFound, match="does not have the model 'another'"):
        asking(server, MemorySink(), coding="another").ask(SAY, Note(text="x"), pass_id="t:p")


@pytest.fixture
def till(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def test_the_commands_that_ask_models_work_with_it(server: RealServer, till: Project) -> None:
    budget = {"context_window": WINDOW, "reserved_tokens": 1024}
    patient = {"timeouts": {"first_byte": 300.0, "idle": 60.0, "total": 600.0}}
    till.configure(server.base_url, models=server.models_table | patient, budget=budget)
    checked = till.cra("check")
    assert checked.code == 0, checked.out
    assert "a prompt beyond the window is refused, not truncated" in checked.out
    found = till.cra("retrieve", till.task, "--json")
    assert found.code == 0, found.err
    assert json.loads(found.out)["budget"]
