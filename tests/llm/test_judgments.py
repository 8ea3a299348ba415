"""Judgments over a real connection: several at a time, answered in any order, weighed by their probabilities."""

import threading

import pytest
from testing.client.memory_sink import MemorySink
from testing.client.model_client import RELEVANT, judge_numbers, model_client, models_config
from testing.patience import PATIENCE
from testing.servers.ollama_script import Answer, ChatCall
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.llm.transports.ollama import connect

COUNT = 6


def number_of(call: ChatCall) -> int:
    return int(call.prompt.rpartition(" ")[2])


def test_answers_in_reverse_order_are_judgments_in_the_order_of_the_items() -> None:
    """The model answers a question only once it has answered the next one."""
    came = [threading.Event() for _ in range(COUNT + 1)]
    came[COUNT].set()
    order: list[int] = []

    def answer(call: ChatCall) -> Answer | str:
        if call.title != RELEVANT.title:
            return "x"
        number = number_of(call)
        assert came[number + 1].wait(PATIENCE)
        order.append(number)
        came[number].set()
        return Answer(text="Yes", likely=(("Yes", 0.5), (" yes", 0.1 * (number + 1) / COUNT), ("No", 0.3)))

    sink = MemorySink()
    with OllamaServer(answer) as server:
        config = models_config(server.base_url, parallel=COUNT)
        client = model_client(connect(config), sink, config=config)
        replies = judge_numbers(client, range(COUNT))
    assert order == [*reversed(range(COUNT))]
    for number, reply in enumerate(replies):
        yes = 0.5 + 0.1 * (number + 1) / COUNT
        assert reply.value is not None
        assert reply.value.confidence == pytest.approx(yes / (yes + 0.3))
        assert sink.calls[reply.call_id - 1].site.item == str(number)
        assert sink.calls[reply.call_id - 1].answer.logprobs
