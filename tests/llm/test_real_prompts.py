"""Each prompt of the program, answered by a real model. Opt-in: see `testing/servers/llama_server.py`."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client
from testing.prompt_inputs import INPUTS
from testing.servers.llama_server import MODEL, PROGRAM, RealServer, running

from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.llm.answers import ParseFault
from clean_room_agent.llm.model_config import ModelsConfig
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.transports.openai import connect

WINDOW = 8192
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.model,
    pytest.mark.skipif(
        not (PROGRAM and MODEL), reason="CRA_LLAMA_SERVER and CRA_LLAMA_MODEL name a server and a model"
    ),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with running(tmp_path_factory.mktemp("server") / "log", window=WINDOW, threads=1) as started:
        yield started


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt.name)
def test_an_answer_has_its_form_and_an_end(server: RealServer, prompt: Prompt[Any, Any]) -> None:
    sink = MemorySink()
    config = msgspec.convert(server.models_table | {"grammar": server.is_binary}, ModelsConfig)
    client = model_client(connect(config), sink, config=config, window=WINDOW)
    reply = client.ask(prompt, INPUTS[prompt.name], pass_id="t:p", repair=False)
    assert sink.asked()[0].ending.finish == reply.finish
    if prompt.answer.reads_cut_answers:
        assert reply.value is not None, reply.text
        return
    # What the model says may be nonsense; that it repeats itself or copies the example is seen, and ends it.
    assert reply.finish in {"stop", "repeated", "copied"}, reply.text
    if reply.finish == "stop" and (prompt.schema is not None or server.is_binary):
        assert not isinstance(prompt.parse(reply.text), ParseFault), reply.text
